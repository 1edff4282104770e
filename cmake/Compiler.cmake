# Warnings of our own code are errors; sanitizers reach everything that is compiled here.
add_library(shmemctl_warnings INTERFACE)
target_compile_options(shmemctl_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wnon-virtual-dtor -Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12's optimiser warns of std::optional values that are only read when they are set, and of
  # copies inside std::string's operator+ (GCC bug 105329); memory errors are the sanitizers'
  # business here.
  target_compile_options(shmemctl_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow -Wno-stringop-overread>)
endif()

# Of files that are compiled several at a time, without the warnings that mean the names of one.
add_library(shmemctl_several_at_once INTERFACE)
target_compile_options(shmemctl_several_at_once INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)

# compile_in_batches(TARGET SIZE) compiles the files of a folder SIZE at a time: most of a file's time goes
# into the headers that all include. So names in anonymous namespaces are unique in a folder. What CMake's
# own UNITY_BUILD writes holds the folder of the checkout, so clones would share nothing in a compiler
# cache. -DSHMEMCTL_BATCHES=OFF compiles each file by itself, for who works on one of them.
option(SHMEMCTL_BATCHES "Compile the files of a folder several at a time" ON)
function(compile_in_batches target size)
  if(NOT SHMEMCTL_BATCHES)
    return()
  endif()
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.(cpp|cu)$")
  list(FILTER sources EXCLUDE REGEX "\\$<")
  list(SORT sources)
  set(batches)
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${directory})
    get_source_file_property(alone ${path} TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    get_source_file_property(options ${path} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    get_source_file_property(language ${path} TARGET_DIRECTORY ${target} LANGUAGE)
    file(RELATIVE_PATH include ${CMAKE_SOURCE_DIR} ${path})
    if(alone OR include MATCHES "^\\.\\./" OR (path MATCHES "\\.cu$" AND NOT language STREQUAL "CXX"))
      continue()
    endif()
    get_filename_component(folder ${include} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(options) # sources of one level of optimisation together
      string(REGEX MATCH "O[0-9]" level "${options}")
      string(APPEND folder "_${level}")
    endif()
    if(NOT DEFINED files_${folder})
      set(files_${folder} 0)
    endif()
    math(EXPR batch "${files_${folder}} / ${size}")
    math(EXPR files_${folder} "${files_${folder}} + 1")
    list(APPEND batches ${folder}_${batch})
    set(options_${folder}_${batch} "${options}")
    list(APPEND of_${folder}_${batch} ${path})
    string(APPEND text_${folder}_${batch} "#include \"${include}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES batches)
  foreach(batch ${batches})
    list(LENGTH of_${batch} files)
    if(files GREATER 1)
      set(output ${CMAKE_BINARY_DIR}/batches/${target}/${batch}.cpp)
      file(CONFIGURE OUTPUT ${output} CONTENT "${text_${batch}}" @ONLY)
      set_source_files_properties(${of_${batch}} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
      target_sources(${target} PRIVATE ${output})
      if(options_${batch})
        set_source_files_properties(${output} TARGET_DIRECTORY ${target}
          PROPERTIES COMPILE_OPTIONS "${options_${batch}}")
      endif()
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE shmemctl_several_at_once)
endfunction()

# optimize_less(TARGET FOLDER...) compiles the sources in these folders, relative to the top, with -O1, which
# takes a third less time than -O2: for code that runs once, or that waits for files and processes.
function(optimize_less target)
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${directory})
    file(RELATIVE_PATH file ${CMAKE_SOURCE_DIR} ${path})
    get_source_file_property(options ${path} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    foreach(folder ${ARGN})
      if(NOT options AND file MATCHES "^${folder}/")
        set_source_files_properties(${path} TARGET_DIRECTORY ${target}
          PROPERTIES COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O1>")
      endif()
    endforeach()
  endforeach()
endfunction()

# What is built for use resists what other hosts and users send it: canaries and probes of the stack,
# checked copies, addresses that are random, relocations that are read-only before main() starts. A
# sanitizer does more than that by itself, and the checked copies need an optimiser.
if(NOT SHMEMCTL_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(fortify 2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(fortify 3)
  endif()
  foreach(option -fstack-protector-strong -fstack-clash-protection)
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:${option}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${option}>)
  endforeach()
  # Some distributions' compilers define it by themselves.
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-U_FORTIFY_SOURCE>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-D_FORTIFY_SOURCE=${fortify}>)
  set(type $<TARGET_PROPERTY:TYPE>)
  set(shared $<OR:$<STREQUAL:${type},SHARED_LIBRARY>,$<STREQUAL:${type},MODULE_LIBRARY>>)
  set(independent $<OR:${shared},$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>) # -fPIC, by CMake
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:${independent}>>:-fPIE>)
  add_link_options($<$<STREQUAL:${type},EXECUTABLE>:-pie> LINKER:-z,relro LINKER:-z,now)
endif()

# position_independent(TARGET...): objects that a shared library is linked from (NvshmemLibrary.cmake), too.
# They should cost a binary next to nothing (not measured): nobody replaces one of their functions, so these
# are inlined, and the linker turns what goes through tables, and calls for the address of a thread_local
# variable, into what -fPIE has. Their thread_local variables have the general model: a library with a single
# one of -ftls-model=initial-exec asks for all of its thread_local memory in the block that the C library
# reserves at the start, and CUDA's static runtime alone has 4096 bytes, so that dlopen() refuses it.
function(position_independent)
  foreach(target ${ARGN})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    set(option -fno-semantic-interposition)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:${option}>
                           $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${option}>)
  endforeach()
endfunction()

if(SHMEMCTL_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SHMEMCTL_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${SHMEMCTL_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Clones in other folders share the cache (the folder that debug information names may then be that
  # of another clone), and what is not in it is compiled without being preprocessed first.
  set(cached ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1)
  # A precompiled header defeats the cache unless it is told not to mind its time stamps.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${cached}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${cached} ${CCACHE})
endif()
