// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel_program.h"

#include <algorithm>
#include <cctype>

namespace disc::pjrt {

namespace {

std::string element_text(DType dtype) {
  std::string name(info(dtype).name);
  if (dtype == DType::c64)
    return "complex<f32>";
  if (dtype == DType::c128)
    return "complex<f64>";
  if (name.front() == 'u')
    return "ui" + name.substr(1);
  for (char &letter : name)
    if (&letter != &name.front())
      letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return name.starts_with("bF") ? "bf16" : name;
}

/// The types of arrays whose dims follow each other, separated by commas; `prefix` and a number in front of each.
std::string types_text(const std::vector<ArraySpec> &arrays, size_t count, const int64_t *dim, const char *prefix) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += i ? ", " : "";
    if (*prefix)
      text += prefix + std::to_string(i) + ": ";
    text += "tensor<";
    for (size_t d = 0; d < arrays[i].shape.size(); ++d)
      text += std::to_string(*dim++) + "x";
    text += element_text(arrays[i].dtype) + ">";
  }
  return text;
}

std::string names_text(const char *prefix, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + (prefix + std::to_string(i));
  return text;
}

/// An attribute of the module, from which HLO takes how arrays lie; nothing if all are in row-major order.
std::string layouts_text(const char *name, const std::vector<Layout *> &layouts) {
  if (std::ranges::all_of(layouts, [](const Layout *layout) { return layout->is_row_major; }))
    return "";
  std::string text;
  for (const Layout *layout : layouts) {
    std::string axes = layout->text.substr(1, layout->text.size() - 2);
    text += (text.empty() ? "" : ", ") + ("dense<[" + axes) + "]> : tensor<" +
            std::to_string(layout->minor_to_major.size()) + "xindex>";
  }
  return std::string("mhlo.xla_entry_computation_") + name + " = [" + text + "]";
}

/// As a string of MLIR.
std::string quoted(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char letter : text) {
    auto code = static_cast<unsigned char>(letter);
    if (std::isprint(code) && letter != '"' && letter != '\\')
      out += letter;
    else
      out += {'\\', digits[code >> 4], digits[code & 15]};
  }
  return out + "\"";
}

/// Those that are not empty, separated by commas.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (std::string_view part : parts)
    if (!part.empty())
      text.append(text.empty() ? "" : ", ").append(part);
  return text;
}

constexpr std::string_view entry = "_entry";

/// The name of a library call; a collective has that of HLO, such as "all-gather".
std::string call_name(const CallSpec &call) {
  constexpr std::string_view collective = "collective_";
  std::string name = call.target;
  if (!name.starts_with(collective))
    return name;
  for (std::string_view plain : {"collective_all_", "collective_reduce_"})
    if (name.starts_with(plain))
      name.erase(0, collective.size());
  std::ranges::replace(name, '_', '-');
  return name;
}

/// The kernels and library calls of a program, each once.
std::string kernels_text(const Code &code) {
  if (code.not_compiled())
    return "interpreted";
  const Executable &executable = *code.first.compiled.executable;
  std::vector<std::string> names;
  auto add = [&](std::string name) {
    if (std::ranges::find(names, name) == names.end())
      names.push_back(std::move(name));
  };
  for (const KernelSpec &kernel : executable.program().kernels)
    add(kernel.name);
  for (std::string name : executable.function_names()) {
    if (name.starts_with("disc_"))
      continue;
    if (name.ends_with(entry)) // of a kernel that may be inlined into it
      name.resize(name.size() - entry.size());
    add(std::move(name));
  }
  for (const CallSpec &call : executable.program().calls)
    add(call_name(call));
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

} // namespace

std::string kernel_program(const Code &code) {
  const Program &program = code.program();
  const int64_t *dims = code.argument_dims.data();
  size_t arguments = code.argument_count(), results = program.results.size();
  std::string inputs = types_text(program.arguments, arguments, dims, "");
  std::string outputs = types_text(program.results, results, code.output_dims.data(), "");
  std::string values = results == 1 ? "%0" : names_text("%0#", results);
  std::string parameters = layouts_text("parameter_layouts", code.argument_layouts);
  std::string made = layouts_text("result_layout", code.output_layouts);
  std::string text = "module @" + quoted(program.name) + " attributes {" +
                     joined({parameters, made, code.first.compiled.of_devices}) + "} {\n  func.func public @main(" +
                     types_text(program.arguments, arguments, dims, "%arg") + ") -> (" + outputs + ") {\n    ";
  if (results)
    text += results == 1 ? "%0 = " : "%0:" + std::to_string(results) + " = ";
  text += "stablehlo.custom_call @shlo_disc(" + names_text("%arg", arguments) + ") {backend_config = " +
          quoted(kernels_text(code)) + ", has_side_effect = true} : (" + inputs + ") -> ";
  text += results == 1 ? outputs : "(" + outputs + ")";
  return text + "\n    return" + (results ? " " + values + " : " + outputs : "") + "\n  }\n}\n";
}

} // namespace disc::pjrt
