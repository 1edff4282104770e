# Two components: `runtime`, which the packages of a release hold (Package.cmake), and `development`,
# for programs that link the library. `cmake --install` installs both.
set(merge_words "")
foreach(word IN LISTS merge_arguments)
  string(APPEND merge_words " \"${word}\"")
endforeach()
# Who has built the binary alone (scripts/run.sh) has all that the library is merged from: it is
# merged now, as it is where the core is newer than it.
install(CODE "
set(core \"$<TARGET_FILE:shmemctl_core>\")
set(merged \"${CMAKE_BINARY_DIR}/libshmemctl_all.a\")
if(NOT EXISTS \"\${core}\")
  message(FATAL_ERROR \"Nothing has been built in ${CMAKE_BINARY_DIR}: run cmake --build ${CMAKE_BINARY_DIR} first\")
endif()
if(NOT EXISTS \"\${merged}\" OR \"\${core}\" IS_NEWER_THAN \"\${merged}\")
  message(STATUS \"Merging \${merged}\")
  execute_process(COMMAND \"${CMAKE_COMMAND}\" ${merge_words} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR \"\${merged} cannot be made, so nothing was installed\")
  endif()
endif()" COMPONENT development)
install(TARGETS shmemctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/libshmemctl.a ${CMAKE_BINARY_DIR}/libshmemctl_all.a
        DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# Man pages and completions are asked of the program that is installed, so they are never older than
# it. A binary that cannot run here (a sanitizer's, another processor's) goes without them.
install(CODE "
set(pages \"${CMAKE_BINARY_DIR}/pages\")
file(REMOVE_RECURSE \"\${pages}\")
file(MAKE_DIRECTORY \"\${pages}/man\")
execute_process(COMMAND \"$<TARGET_FILE:shmemctl>\" reference man \"\${pages}/man\"
                RESULT_VARIABLE failed)
foreach(shell_and_file bash/shmemctl zsh/_shmemctl fish/shmemctl.fish)
  get_filename_component(shell \"\${shell_and_file}\" DIRECTORY)
  file(MAKE_DIRECTORY \"\${pages}/\${shell}\")
  execute_process(COMMAND \"$<TARGET_FILE:shmemctl>\" completion \${shell}
                  OUTPUT_FILE \"\${pages}/\${shell_and_file}\" RESULT_VARIABLE shell_failed)
  if(shell_failed)
    set(failed \${shell_failed})
  endif()
endforeach()
if(failed)
  message(WARNING \"shmemctl does not run here (\${failed}): no man pages and completions\")
  file(REMOVE_RECURSE \"\${pages}\")
  foreach(folder man bash zsh fish)
    file(MAKE_DIRECTORY \"\${pages}/\${folder}\")
  endforeach()
endif()" COMPONENT runtime)
install(DIRECTORY ${CMAKE_BINARY_DIR}/pages/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime)
install(DIRECTORY ${CMAKE_BINARY_DIR}/pages/bash/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(DIRECTORY ${CMAKE_BINARY_DIR}/pages/zsh/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
install(DIRECTORY ${CMAKE_BINARY_DIR}/pages/fish/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY reports/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/schema COMPONENT runtime)
install(DIRECTORY reports/grafana/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/grafana COMPONENT runtime)
install(DIRECTORY scripts/ci/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/ci
        USE_SOURCE_PERMISSIONS COMPONENT runtime
        PATTERN "*.service" EXCLUDE PATTERN "*.timer" EXCLUDE)
# Where systemd looks for units of packages, on systems with lib64 as well. None is enabled by that.
file(GLOB units CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/ci/*.service
     ${CMAKE_SOURCE_DIR}/scripts/ci/*.timer)
install(FILES ${units} DESTINATION lib/systemd/system COMPONENT runtime)
install(FILES src/instruments/hotspots/nic_thresholds.conf
  src/instruments/explain/log_messages.conf src/instruments/doctor/kernel_messages.conf
  DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl COMPONENT runtime)
install(DIRECTORY src/runtime/shmem/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
foreach(header ${SHMEMCTL_DEVICE_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${CMAKE_BINARY_DIR}/include/shmemctl/device/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shmemctl/device/${folder} COMPONENT development)
endforeach()

# For users: pkg-config, and CMake's find_package(shmemctl). Both find the rest from where they lie.
file(RELATIVE_PATH path_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" path_to_prefix "${path_to_prefix}")
foreach(file shmemctl.pc shmemctlConfig.cmake)
  configure_file(cmake/${file}.in ${CMAKE_BINARY_DIR}/generated/${file} @ONLY)
endforeach()
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/shmemctlConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/shmemctl.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/generated/shmemctlConfig.cmake
        ${CMAKE_BINARY_DIR}/generated/shmemctlConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/shmemctl COMPONENT development)
include(cmake/Package.cmake)
