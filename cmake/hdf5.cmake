# lib/libpaddle_hdf5.so: engine/formats/hdf5/module, opened by the room formats when an HDF5 file is
# read. It links the HDF5 library and nothing of ours. Without the library, such files are refused.
set(HDF5_NO_FIND_PACKAGE_CONFIG_FILE ON)
find_package(HDF5 QUIET COMPONENTS C)
if(HDF5_FOUND)
  add_library(paddle_hdf5_module MODULE ${CMAKE_SOURCE_DIR}/engine/formats/hdf5/module/module.cc)
  set_target_properties(paddle_hdf5_module PROPERTIES
    OUTPUT_NAME paddle_hdf5 CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(paddle_hdf5_module PRIVATE ${CMAKE_SOURCE_DIR}/engine)
  target_include_directories(paddle_hdf5_module SYSTEM PRIVATE ${HDF5_INCLUDE_DIRS})
  target_link_libraries(paddle_hdf5_module PRIVATE paddle_flags ${HDF5_C_LIBRARIES})
endif()
