# lib/libpaddle_crypto.so: engine/base/crypto_module, opened by the room base for encrypted and signed
# models and for certificates. Without OpenSSL these report that it is missing.
find_package(OpenSSL 3 QUIET COMPONENTS Crypto)
if(OPENSSL_FOUND)
  paddle_module(crypto SOURCES 
    ${CMAKE_SOURCE_DIR}/engine/base/crypto_module/certificate.cc
    ${CMAKE_SOURCE_DIR}/engine/base/crypto_module/module.cc
    LIBRARIES OpenSSL::Crypto)
endif()
