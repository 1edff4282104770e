# Run with -DAR, -DMRI (the archiver's script), -DMERGED (what it makes) and, to leave debug
# information out, -DOBJCOPY: merges the core and the static libraries that it needs.
execute_process(COMMAND ${AR} -M INPUT_FILE ${MRI} RESULT_VARIABLE failed)
if(NOT failed AND OBJCOPY)
  execute_process(COMMAND ${OBJCOPY} --strip-debug ${MERGED} RESULT_VARIABLE failed)
endif()
if(failed)
  file(REMOVE ${MERGED}) # half of it is worse than none
  message(FATAL_ERROR "${MERGED} cannot be made: ${AR} -M < ${MRI} failed")
endif()
