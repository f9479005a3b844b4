# lib/libpaddle_hdf5.so: engine/formats/hdf5/module, opened by the room formats when an HDF5 file is
# read. It links the HDF5 library and nothing of ours. Without the library, such files are refused.
find_path(HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5_LIBRARY hdf5 PATH_SUFFIXES hdf5/serial)
if(HDF5_INCLUDE AND HDF5_LIBRARY)
  add_library(paddle_hdf5_module MODULE ${CMAKE_SOURCE_DIR}/engine/formats/hdf5/module/module.cc)
  set_target_properties(paddle_hdf5_module PROPERTIES
    OUTPUT_NAME paddle_hdf5 CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(paddle_hdf5_module PRIVATE ${CMAKE_SOURCE_DIR}/engine)
  target_include_directories(paddle_hdf5_module SYSTEM PRIVATE ${HDF5_INCLUDE})
  target_link_libraries(paddle_hdf5_module PRIVATE paddle_flags ${HDF5_LIBRARY})
endif()
