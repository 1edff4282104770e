# What a release packs (scripts/release.sh): the component `runtime` as .tar.zst, .deb and .rpm. With it
# come the licences of what is linked into the portable binary, which Debian's packages in the sysroot
# carry.
if(SHMEMCTL_PORTABLE)
  foreach(package gcc-12-base libboost1.74-dev libcli11-dev libexpat1-dev libfmt-dev libhwloc-dev
          libjs-chart.js libvalijson-dev libzstd-dev nlohmann-json3-dev)
    install(FILES ${CMAKE_SYSROOT}/usr/share/doc/${package}/copyright RENAME ${package}
            DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses COMPONENT runtime)
  endforeach()
  install(FILES packaging/licenses/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses
          COMPONENT runtime)
  # cpack builds nothing: the binary is there, and the library is not packed.
  set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
endif()

set(CPACK_PACKAGE_NAME shmemctl)
set(CPACK_PACKAGE_VENDOR shmemctl)
set(CPACK_PACKAGE_CONTACT "shmemctl maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Checks and measures one-sided GPU communication")
set(CPACK_PACKAGE_DESCRIPTION "Tells whether the one-sided GPU communication of a node or a cluster works,
how fast it is, which NIC each GPU process really uses, and where the hot spot is.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL runtime)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_FILE_NAME shmemctl-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_ARCHIVE_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
set(CPACK_DEBIAN_FILE_NAME shmemctl_${PROJECT_VERSION}_amd64.deb)
set(CPACK_RPM_FILE_NAME shmemctl-${PROJECT_VERSION}-1.x86_64.rpm)
set(CPACK_VERBATIM_VARIABLES ON)
if(SHMEMCTL_GLIBC)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${SHMEMCTL_GLIBC})")
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libibverbs1, libfabric1, libucx0")
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
# It is stripped already, and is what was tested: rpmbuild changes nothing.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define __os_install_post %{nil}\n%define debug_package %{nil}")
set(CPACK_RPM_COMPRESSION_TYPE gzip)
set(CPACK_RPM_PACKAGE_GROUP Applications/System)
# Folders that belong to others.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1 /usr/share/man/man7
  /usr/share/zsh /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d
  /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/lib/systemd /usr/lib/systemd/system)
include(CPack)
