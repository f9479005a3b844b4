# lib/libpaddle_http.so: engine/hub/module, opened by the room hub when a file is downloaded. Without
# libcurl and OpenSSL, `paddle get` says so.
find_package(CURL QUIET)
find_package(OpenSSL QUIET COMPONENTS Crypto)
if(CURL_FOUND AND OPENSSL_FOUND)
  paddle_module(http SOURCES ${CMAKE_SOURCE_DIR}/engine/hub/module/module.cc
    LIBRARIES CURL::libcurl OpenSSL::Crypto)
endif()
