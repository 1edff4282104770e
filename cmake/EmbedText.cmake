# Run with -DINPUT (a list of files), -DOUTPUT, -DFUNCTION and -DHEADER: writes a C++ file whose
# function returns the text of the files, one after the other. -DNAMESPACE is shmemctl if it is not
# given; -DHASH=ON adds FUNCTION_sha256(), the text's SHA-256 in hexadecimal digits.
if(NOT NAMESPACE)
  set(NAMESPACE shmemctl)
endif()
set(text "")
foreach(file ${INPUT})
  file(READ ${file} one)
  string(APPEND text "${one}")
endforeach()
string(FIND "${text}" ")embedded\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${INPUT} holds the raw string's delimiter")
endif()
set(hash "")
if(HASH)
  # It is in an element of a page, which these would end.
  string(REGEX MATCH "</(script|style)|<!--" end "${text}")
  if(end)
    message(FATAL_ERROR "${INPUT} holds ${end}, which would end its element")
  endif()
  string(SHA256 digits "${text}")
  set(hash "\nstd::string ${FUNCTION}_sha256() {\n  return \"${digits}\";\n}\n")
endif()
file(WRITE ${OUTPUT}
  "// Written at build time.\n// Every compiler of ours takes a literal of any length; the standard asks for 64 KiB only.
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n"
  "std::string ${FUNCTION}() {\n  return R\"embedded(${text})embedded\";\n}\n${hash}\n} // namespace ${NAMESPACE}\n")
