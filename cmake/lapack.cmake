# lib/libpaddle_lapack.so: engine/kernels/linalg/module, opened by the room kernels when a matrix is
# decomposed. OpenBLAS built with threads is preferred: only then is it safe for several callers at
# once. The module keeps it from starting threads. Any LAPACK with Fortran's names does.
find_library(PADDLE_OPENBLAS openblas PATH_SUFFIXES openblas-pthread)
if(PADDLE_OPENBLAS)
  set(lapack_libraries ${PADDLE_OPENBLAS})
else()
  find_library(PADDLE_LAPACK lapack)
  find_library(PADDLE_BLAS blas)
  if(NOT PADDLE_LAPACK OR NOT PADDLE_BLAS)
    message(FATAL_ERROR "LAPACK is missing (Debian: libopenblas-pthread-dev)")
  endif()
  set(lapack_libraries ${PADDLE_LAPACK} ${PADDLE_BLAS})
endif()
paddle_module(lapack SOURCES ${CMAKE_SOURCE_DIR}/engine/kernels/linalg/module/module.cc
  LIBRARIES ${lapack_libraries})
