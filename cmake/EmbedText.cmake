# Run with -DINPUT, -DOUTPUT, -DFUNCTION and -DHEADER: writes a C++ file whose function returns the
# text of INPUT.
file(READ ${INPUT} text)
string(FIND "${text}" ")embedded\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${INPUT} holds the raw string's delimiter")
endif()
file(WRITE ${OUTPUT}
  "// Written at build time.\n// Every compiler of ours takes a literal of any length; the standard asks for 64 KiB only.
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
#include \"${HEADER}\"\n\nnamespace shmemctl {\n\n"
  "std::string ${FUNCTION}() {\n  return R\"embedded(${text})embedded\";\n}\n\n} // namespace shmemctl\n")
