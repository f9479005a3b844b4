# Modules that the room formats opens when it reads a file of their kind. Without the library of a
# module, such files are rejected.

# lib/libpaddle_hdf5.so: engine/formats/hdf5/module.
find_path(HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5_LIBRARY hdf5 PATH_SUFFIXES hdf5/serial)
if(HDF5_INCLUDE AND HDF5_LIBRARY)
  paddle_module(hdf5 SOURCES ${CMAKE_SOURCE_DIR}/engine/formats/hdf5/module/module.cc
    INCLUDES ${HDF5_INCLUDE} LIBRARIES ${HDF5_LIBRARY})
endif()

# lib/libpaddle_sound.so: engine/formats/sound/module.
find_path(SNDFILE_INCLUDE sndfile.h)
find_library(SNDFILE_LIBRARY sndfile)
find_path(SOXR_INCLUDE soxr.h)
find_library(SOXR_LIBRARY soxr)
if(SNDFILE_INCLUDE AND SNDFILE_LIBRARY AND SOXR_INCLUDE AND SOXR_LIBRARY)
  paddle_module(sound SOURCES ${CMAKE_SOURCE_DIR}/engine/formats/sound/module/module.cc
    INCLUDES ${SNDFILE_INCLUDE} ${SOXR_INCLUDE} LIBRARIES ${SNDFILE_LIBRARY} ${SOXR_LIBRARY})
endif()

# lib/libpaddle_archive.so: engine/formats/compressed/module.
find_path(ARCHIVE_INCLUDE archive.h)
find_library(ARCHIVE_LIBRARY archive)
if(ARCHIVE_INCLUDE AND ARCHIVE_LIBRARY)
  paddle_module(archive SOURCES ${CMAKE_SOURCE_DIR}/engine/formats/compressed/module/module.cc
    INCLUDES ${ARCHIVE_INCLUDE} LIBRARIES ${ARCHIVE_LIBRARY})
endif()
