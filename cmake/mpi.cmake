# lib/libpaddle_mpi.so: engine/comm/mpi, opened by the room comm where PADDLE_TRANSPORT is mpi.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(MPI IMPORTED_TARGET QUIET mpi-c)
endif()
if(TARGET PkgConfig::MPI)
  paddle_module(mpi SOURCES ${CMAKE_SOURCE_DIR}/engine/comm/mpi/module.cc
    INCLUDES ${MPI_INCLUDE_DIRS} LIBRARIES PkgConfig::MPI)
endif()
