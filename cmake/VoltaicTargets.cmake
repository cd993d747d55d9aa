# voltaic_library(NAME [LINKS targets...]): one static library from the .cpp files of the current folder, alias voltaic::NAME.
# Its link list is its arrows: link only lower floors (docs/architecture.md); the `layers` test checks the includes.
function(voltaic_library name)
  cmake_parse_arguments(ARG "" "" "LINKS;EXTRA_DIRS" ${ARGN})
  set(globs "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/detail/*.cpp")
  foreach(dir IN LISTS ARG_EXTRA_DIRS)
    list(APPEND globs "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  add_library(voltaic_${name} STATIC ${sources})
  add_library(voltaic::${name} ALIAS voltaic_${name})
  target_include_directories(voltaic_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(voltaic_${name} PUBLIC ${ARG_LINKS} PRIVATE voltaic_warnings fmt::fmt)
endfunction()

# voltaic_test(NAME DIR [LINKS targets...]): one Catch2 program from DIR/*_test.cpp, one ctest entry per program.
function(voltaic_test name dir)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*_test.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE voltaic_test_main voltaic_warnings fmt::fmt ${ARG_LINKS})
  target_include_directories(test_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT
    "VOLTAIC_SOURCE_DIR=${PROJECT_SOURCE_DIR};VOLTAIC_PROGRAM=$<TARGET_FILE:voltaic>" TIMEOUT 600)
endfunction()
