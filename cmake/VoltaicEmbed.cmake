# voltaic_embed(TARGET FUNCTION FILE...): adds to TARGET a source that defines
#   std::span<const voltaic::EmbeddedFile> voltaic::FUNCTION()
# over the contents of the files, in the order given.
function(voltaic_embed target function)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  add_custom_command(
    OUTPUT "${out}"
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DFUNCTION=${function}" "-DFILES=${ARGN}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake"
    DEPENDS ${ARGN} "${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${out}")
  set_source_files_properties("${out}" PROPERTIES COMPILE_OPTIONS "-Wno-overlength-strings" SKIP_LINTING ON)
endfunction()
