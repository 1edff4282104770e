include(GNUInstallDirs)
install(TARGETS shmemctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY reports/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/schema)
