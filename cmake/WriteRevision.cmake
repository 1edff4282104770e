# Run with -DSOURCE_DIR and -DOUTPUT; writes the header, touching it only when it changes.
set(revision "unknown")
set(dirty "-1")
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE out RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT failed)
  set(revision "${out}")
  execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE out RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND out STREQUAL "")
    set(dirty "0")
  elseif(NOT failed)
    set(dirty "1")
  endif()
endif()
string(CONCAT content
  "// Written at each build.\n#pragma once\n"
  "#define SHMEMCTL_GIT_REVISION \"${revision}\"\n"
  "#define SHMEMCTL_GIT_DIRTY ${dirty}\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${content}")
  file(WRITE ${OUTPUT} "${content}")
endif()
