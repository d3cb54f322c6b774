# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# find_package(shlo_disc): the target shlo_disc::runtime is the library of shlo_disc.h, with the path of that header, and
# shlo_disc::runtime_static is the same as a static library, for programs in C and in C++.
# Its folder is what `python -c "import shlo_disc; print(shlo_disc.get_cmake_dir())"` prints, for -Dshlo_disc_DIR.

get_filename_component(_shlo_disc_root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(_shlo_disc_library "${_shlo_disc_root}/lib/libshlo_disc_runtime.so")
if(NOT EXISTS "${_shlo_disc_library}")
  # An editable install has its libraries elsewhere; the interpreter that has it is the first one.
  find_program(_shlo_disc_python NAMES python python3 NO_CACHE)
  execute_process(COMMAND "${_shlo_disc_python}" -c "import shlo_disc; print(shlo_disc.get_library())" ERROR_QUIET
    OUTPUT_VARIABLE _shlo_disc_library OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _shlo_disc_result)
  unset(_shlo_disc_python)
  if(NOT _shlo_disc_result EQUAL 0)
    set(shlo_disc_FOUND FALSE)
    set(shlo_disc_NOT_FOUND_MESSAGE "there is no library at ${_shlo_disc_root}/lib: install the package again")
    return()
  endif()
endif()

if(NOT TARGET shlo_disc::runtime)
  add_library(shlo_disc::runtime SHARED IMPORTED)
  set_target_properties(shlo_disc::runtime PROPERTIES
    IMPORTED_LOCATION "${_shlo_disc_library}" INTERFACE_INCLUDE_DIRECTORIES "${_shlo_disc_root}/runtime/include")
endif()
get_filename_component(_shlo_disc_folder "${_shlo_disc_library}" DIRECTORY)
if(NOT TARGET shlo_disc::runtime_static)
  add_library(shlo_disc::runtime_static STATIC IMPORTED)
  set_target_properties(shlo_disc::runtime_static PROPERTIES
    IMPORTED_LOCATION "${_shlo_disc_folder}/libshlo_disc_runtime.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_shlo_disc_root}/runtime/include"
    INTERFACE_LINK_LIBRARIES "stdc++;m;pthread;${CMAKE_DL_LIBS}")
endif()
unset(_shlo_disc_folder)
unset(_shlo_disc_root)
unset(_shlo_disc_library)
unset(_shlo_disc_result)
