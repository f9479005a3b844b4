# lib/libpaddle.so, and `cmake --install`: programs, the library with its headers and CMake and
# pkg-config files, models and configs, manual pages and shell completions. docs/guide/installing.md
# describes the result.
include(CMakePackageConfigHelpers)

# Only the symbols of include/paddle are exported: the rooms' are hidden by the linker's version
# script, so that a program may link other versions of what the engine links. The programs link the
# rooms themselves: they start faster so, and the library need not export what they use.
add_library(paddle_shared SHARED $<TARGET_OBJECTS:paddle_api>)
add_library(paddle::paddle ALIAS paddle_shared)
set_target_properties(paddle_shared PROPERTIES
  OUTPUT_NAME paddle
  EXPORT_NAME paddle
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/libpaddle.map)
get_target_property(api_rooms paddle_api LINK_LIBRARIES)
target_link_libraries(paddle_shared PRIVATE ${api_rooms})
target_link_options(paddle_shared PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/libpaddle.map)
if(NOT PADDLE_SANITIZE)  # clang's sanitizers are in the program, not in the library
  target_link_options(paddle_shared PRIVATE -Wl,--no-undefined)
endif()
target_include_directories(paddle_shared INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PADDLE_GENERATED_ROOT}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(paddle_shared INTERFACE cxx_std_20)

# Rooms that are shared libraries themselves (sanitizer builds) are for testing only.
if(BUILD_SHARED_LIBS)
  return()
endif()

# ---- programs, library, headers ------------------------------------------------------------------

install(TARGETS paddle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# A third of the program is names of its functions, which profilers read in the build folder.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_STRIP)
  install(CODE "
    execute_process(COMMAND \"${CMAKE_STRIP}\"
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/paddle\")")
endif()
foreach(link IN LISTS PADDLE_LINKS)
  install(CODE "
    set(link \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${link}\")
    file(CREATE_LINK paddle \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${link})")
endforeach()
install(TARGETS paddle_shared EXPORT paddle-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(module archive codegen crypto lapack gloo grpc hdf5 http mpi sound)
  if(TARGET paddle_${module}_module)
    install(TARGETS paddle_${module}_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/paddle ${PADDLE_GENERATED_ROOT}/include/paddle
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h PATTERN *.hpp)

# ---- find_package and pkg-config -----------------------------------------------------------------

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/paddle)
install(EXPORT paddle-targets NAMESPACE paddle:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/paddle-config.cmake.in
  ${CMAKE_BINARY_DIR}/package/paddle-config.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/paddle-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/paddle-config.cmake
  ${CMAKE_BINARY_DIR}/package/paddle-config-version.cmake
  ${CMAKE_SOURCE_DIR}/cmake/paddle-plugin.cmake ${CMAKE_SOURCE_DIR}/cmake/paddle-plugin.map
  DESTINATION ${package_folder})
# Relative to the file itself, so that the installed tree may be moved.
file(RELATIVE_PATH PADDLE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PADDLE_PC_PREFIX "${PADDLE_PC_PREFIX}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/paddle.pc.in
  ${CMAKE_BINARY_DIR}/package/paddle.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/paddle.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- models, configs, documents ------------------------------------------------------------------

install(DIRECTORY ${CMAKE_SOURCE_DIR}/configs ${CMAKE_SOURCE_DIR}/datasets
  ${CMAKE_SOURCE_DIR}/models
  DESTINATION ${CMAKE_INSTALL_DATADIR}/paddle)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/plugins/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/plugins
  PATTERN *.so EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md ${CMAKE_SOURCE_DIR}/CODE_OF_CONDUCT.md
  ${CMAKE_SOURCE_DIR}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN changes EXCLUDE)

# ---- manual pages and completions, which the programs write themselves ----------------------------

set(manual_folder ${CMAKE_BINARY_DIR}/manual)
set(pages "")
set(page_commands "")
foreach(program IN ITEMS paddle LISTS PADDLE_LINKS)
  string(REGEX REPLACE "^paddle-?" "" command ${program})
  list(APPEND pages ${manual_folder}/${program}.1)
  list(APPEND page_commands COMMAND paddle man ${command} > ${manual_folder}/${program}.1)
endforeach()
set(completions "")
set(completion_commands "")
foreach(shell bash zsh fish)
  list(APPEND completions ${manual_folder}/completion.${shell})
  list(APPEND completion_commands
    COMMAND paddle completion ${shell} > ${manual_folder}/completion.${shell})
endforeach()
file(MAKE_DIRECTORY ${manual_folder})
add_custom_command(OUTPUT ${pages} ${completions}
  ${page_commands} ${completion_commands}
  DEPENDS paddle
  COMMENT "manual pages and shell completions"
  VERBATIM)
add_custom_target(manual ALL DEPENDS ${pages} ${completions})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual_folder}/completion.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME paddle)
# bash-completion looks for a file of the command's name.
foreach(program IN LISTS PADDLE_LINKS)
  install(CODE "
    set(link \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/bash-completion/completions/${program}\")
    file(CREATE_LINK paddle \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${link})")
endforeach()
install(FILES ${manual_folder}/completion.zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _paddle)
install(FILES ${manual_folder}/completion.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME paddle.fish)

include(cmake/package.cmake)
