# lib/libpaddle_http.so: engine/hub/module, opened by the room hub when a file is downloaded. Without
# libcurl, `paddle get` reports that it is missing.
find_package(CURL QUIET)
if(CURL_FOUND)
  paddle_module(http SOURCES ${CMAKE_SOURCE_DIR}/engine/hub/module/module.cc
    LIBRARIES CURL::libcurl)
endif()
