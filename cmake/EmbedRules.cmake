# SPDX-License-Identifier: MIT
# Turns rules/*.yaml into a C table, so that the binary carries the shipped packs. Each file becomes an array of bytes (string literals
# have a length limit in ISO C).
function(rp_embed_rules output)
  file(GLOB packs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rules/*.yaml)
  list(SORT packs)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DPACKS=${packs}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${packs} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the rule packs" VERBATIM)
endfunction()
