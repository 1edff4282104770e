include(GNUInstallDirs)
install(TARGETS shmemctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY reports/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/schema)
install(DIRECTORY reports/grafana/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/grafana)
install(DIRECTORY scripts/ci/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/ci
        USE_SOURCE_PERMISSIONS)
install(FILES src/topo/hotspots/nic_thresholds.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl)
install(FILES ${CMAKE_BINARY_DIR}/libshmemctl.a ${CMAKE_BINARY_DIR}/libshmemctl_all.a
        DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/shmem/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
