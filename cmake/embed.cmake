# SPDX-License-Identifier: MIT
# cmake -DOUTPUT=packs.c -DPACKS=a.yaml;b.yaml -P embed.cmake
set(arrays "")
set(rows "")
foreach(pack IN LISTS PACKS)
  get_filename_component(name ${pack} NAME)
  string(MAKE_C_IDENTIFIER "pack_${name}" id)
  file(READ ${pack} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "static const unsigned char ${id}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)${id}, sizeof ${id} - 1},\n")
endforeach()
file(WRITE ${OUTPUT}.new "/* Made from rules/ by cmake/embed.cmake. */\n#include \"packs.h\"\n\n${arrays}\n"
  "const struct cat_pack cat_packs[] = {\n${rows}    {0, 0, 0},\n};\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
