# SPDX-License-Identifier: MIT
# The one list of warnings, and the options every target of ours gets.
function(rp_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wundef
    -Wwrite-strings -Wformat=2 -Wnull-dereference)
  if(ROWPROF_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(ROWPROF_SANITIZE)
    target_compile_definitions(${target} PRIVATE RP_ALWAYS_MOVES)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
  if(ROWPROF_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage)
    target_link_options(${target} PRIVATE --coverage)
  endif()
  if(ROWPROF_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link,address,undefined)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()
