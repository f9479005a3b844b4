# lib/libpaddle_hdf5.so: engine/formats/hdf5/module, opened by the room formats when an HDF5 file is
# read. Without the HDF5 library, such files are rejected.
find_path(HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5_LIBRARY hdf5 PATH_SUFFIXES hdf5/serial)
if(HDF5_INCLUDE AND HDF5_LIBRARY)
  paddle_module(hdf5 SOURCES ${CMAKE_SOURCE_DIR}/engine/formats/hdf5/module/module.cc
    INCLUDES ${HDF5_INCLUDE} LIBRARIES ${HDF5_LIBRARY})
endif()
