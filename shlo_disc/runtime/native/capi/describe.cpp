// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "errors.h"
#include "objects.h"
#include "tensors.h"

#include <algorithm>
#include <cstring>

namespace disc::capi {

ArrayText::ArrayText(const ArraySpec &spec, std::string name)
    : path(spec.path), name(std::move(name)), dtype(info(spec.dtype).numpy), type(data_type(spec.dtype)) {
  for (const DimSpec &dim : spec.shape) {
    sizes.push_back(dim.size);
    texts.push_back(dim.text);
  }
  for (const std::string &text : texts)
    text_pointers.push_back(text.c_str());
}

void ArrayText::write(disc_array_info *out) const {
  check_struct_size(out->struct_size, "disc_array_info");
  disc_array_info known{out->struct_size, path.c_str(),         dtype.c_str(), type, sizes.size(), sizes.data(),
                        text_pointers.data(), name.c_str()};
  std::memcpy(out, &known, std::min(out->struct_size, sizeof(known)));
}

} // namespace disc::capi

using namespace disc::capi;

const char *disc_name(const disc_program_t *program) {
  return program != nullptr ? program->loaded->program().name.c_str() : nullptr;
}

const char *disc_level(const disc_program_t *program) {
  return program != nullptr ? program->loaded->level.c_str() : nullptr;
}

const char *disc_symbol(const disc_program_t *program, size_t index) {
  if (program == nullptr)
    return nullptr;
  const std::vector<disc::SymbolSpec> &symbols = program->loaded->program().symbols;
  return index < symbols.size() ? symbols[index].name.c_str() : nullptr;
}

size_t disc_argument_count(const disc_program_t *program) {
  return program != nullptr ? program->loaded->arguments.size() - program->bound->addresses.size() : 0;
}

size_t disc_result_count(const disc_program_t *program) {
  return program != nullptr ? program->loaded->results.size() : 0;
}

disc_error_t *disc_describe_argument(const disc_program_t *program, size_t index, disc_array_info *info) {
  return guarded([&] {
    given(program, "disc_describe_argument: program");
    given(info, "disc_describe_argument: info");
    if (index >= disc_argument_count(program))
      bad_value("there is no argument " + std::to_string(index) + ", for a call takes " +
                counted(disc_argument_count(program), "argument"));
    program->loaded->arguments[program->bound->addresses.size() + index].write(info);
  });
}

disc_error_t *disc_describe_result(const disc_program_t *program, size_t index, disc_array_info *info) {
  return guarded([&] {
    given(program, "disc_describe_result: program");
    given(info, "disc_describe_result: info");
    if (index >= disc_result_count(program))
      bad_value("there is no result " + std::to_string(index) + ", for a call has " +
                counted(disc_result_count(program), "result"));
    program->loaded->results[index].write(info);
  });
}
