# generated/revision.h: version, git revision and whether the tree was dirty, renewed at each build
# but touched only when it changes.
add_custom_target(shmemctl_revision ALL
  COMMAND ${CMAKE_COMMAND}
    -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DOUTPUT=${CMAKE_BINARY_DIR}/generated/revision.h
    -P ${CMAKE_SOURCE_DIR}/cmake/WriteRevision.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/revision.h
  COMMENT "")
configure_file(cmake/build_info.h.in generated/build_info.h @ONLY)
