# A Debian package: `cpack -G DEB` in the build folder. Its dependencies are those of the programs
# and libraries in it. Packagers set CPACK_PACKAGE_CONTACT to themselves.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paddle)
set(CPACK_PACKAGE_VENDOR "Paddle toolchain authors")
set(CPACK_PACKAGE_CONTACT "Paddle toolchain authors <maintainers@example.invalid>" CACHE STRING
  "Maintainer of the packages that cpack makes")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
"Tools that train, evaluate and run neural networks described in YAML, and
run ONNX models, without Python; a library with C++ and C interfaces for
prediction, training and single operations; example models and configs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Of the package's own library, which dpkg-shlibdeps does not know yet.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/compress-manual.cmake)
include(CPack)
