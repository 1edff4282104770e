# `scripts/build.sh tidy tidy`: clang-tidy over our own sources, by .clang-tidy; clean or red. In
# the preset of that name, because a precompiled header of GCC's is none for clang.
find_program(RUN_CLANG_TIDY NAMES run-clang-tidy run-clang-tidy-14 run-clang-tidy-18)
if(RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${RUN_CLANG_TIDY} -quiet -p ${CMAKE_BINARY_DIR} "${CMAKE_SOURCE_DIR}/(src|cli|reports|transports)/.*\\.cpp$$"
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMENT "clang-tidy" VERBATIM)
  add_dependencies(tidy shmemctl_revision)
endif()
