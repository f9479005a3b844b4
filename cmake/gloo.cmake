# lib/libpaddle_gloo.so: engine/comm/gloo, opened by the room comm where PADDLE_TRANSPORT is gloo.
find_path(GLOO_INCLUDE gloo/transport/tcp/device.h)
find_library(GLOO_LIBRARY gloo)
if(GLOO_INCLUDE AND GLOO_LIBRARY)
  paddle_module(gloo SOURCES ${CMAKE_SOURCE_DIR}/engine/comm/gloo/module.cc
    INCLUDES ${GLOO_INCLUDE} LIBRARIES ${GLOO_LIBRARY})
endif()
