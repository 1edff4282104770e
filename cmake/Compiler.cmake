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

if(SHMEMCTL_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SHMEMCTL_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${SHMEMCTL_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header defeats the cache unless it is told not to mind its time stamps.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
