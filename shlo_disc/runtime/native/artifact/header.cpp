// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "header.h"

#include "core/error.h"
#include "cpu_features.h"
#include "header_digest.h"

#include <type_traits>

namespace disc {

namespace {

constexpr size_t kMostHeaderBytes = size_t{64} << 20;
constexpr int64_t kHeaderFormat = 3; // the newest; 2 has no gradients of attentions, 1 no symbols solved from several sizes
constexpr std::string_view kArchitecture = "x86_64";

template <typename T> struct IsList : std::false_type {};
template <typename T> struct IsList<std::vector<T>> : std::true_type {};

/// Whether `json` is a T, which `out` then is.
template <typename T> bool convert(const Json &json, T &out) {
  if constexpr (IsList<T>::value) {
    const auto *list = json.get<Json::List>();
    if (list == nullptr)
      return false;
    out.resize(list->size());
    for (size_t i = 0; i < list->size(); ++i)
      if (!convert((*list)[i], out[i]))
        return false;
    return true;
  } else if constexpr (std::is_same_v<T, size_t>) {
    const auto *number = json.get<int64_t>();
    if (number == nullptr || *number < 0)
      return false;
    out = static_cast<size_t>(*number);
    return true;
  } else {
    const T *value = json.get<T>();
    if (value != nullptr)
      out = *value;
    return value != nullptr;
  }
}

const Json &member_of(const Json &object, const char *key) {
  const Json *found = object.member(key);
  if (found == nullptr)
    bad_artifact(std::string("header: '") + key + "' is missing");
  return *found;
}

[[noreturn]] void fail_type(const char *key) {
  bad_artifact(std::string("header: '") + key + "' has a wrong type or range");
}

template <typename T> T field(const Json &object, const char *key) {
  T value{};
  if (!convert(member_of(object, key), value))
    fail_type(key);
  return value;
}

template <typename T> T field_or(const Json &object, const char *key, T otherwise) {
  return object.member(key) == nullptr ? otherwise : field<T>(object, key);
}

const Json::List &list_of(const Json &object, const char *key) {
  const auto *list = member_of(object, key).get<Json::List>();
  if (list == nullptr)
    fail_type(key);
  return *list;
}

/// A list of objects.
const Json::List &rows(const Json &object, const char *key) {
  const Json::List &list = list_of(object, key);
  for (const Json &row : list)
    if (row.get<Json::Object>() == nullptr)
      fail_type(key);
  return list;
}

const Json::List &rows_or_none(const Json &object, const char *key) {
  static const Json::List none;
  return object.member(key) == nullptr ? none : rows(object, key);
}

DType dtype_of(const Json &row) {
  auto name = field<std::string>(row, "dtype");
  const DTypeInfo *known = dtype_named(name);
  if (known == nullptr)
    bad_artifact("header: unknown dtype '" + name + "'");
  return known->dtype;
}

DimSpec dim_spec(const Json &dim, const std::string &path) {
  if (const auto *text = dim.get<std::string>())
    return {-1, *text};
  const auto *size = dim.get<int64_t>();
  if (size == nullptr || *size < 0)
    bad_artifact("header: '" + (size ? std::to_string(*size) : "this") + "' is not a dimension of " + path);
  return {*size, std::to_string(*size)};
}

ArraySpec array_spec(const Json &row) {
  ArraySpec spec;
  spec.path = field<std::string>(row, "path");
  spec.dtype = dtype_of(row);
  spec.key = field_or<std::string>(row, "key", "");
  spec.memory = field_or<std::string>(row, "memory", "");
  spec.layout = field_or<std::vector<size_t>>(row, "layout", {});
  spec.donated = field_or<bool>(row, "donated", false);
  for (const Json &dim : list_of(row, "shape"))
    spec.shape.push_back(dim_spec(dim, spec.path));
  return spec;
}

/// A step: the name of an operation, and a number, a symbol's number or an argument's number and dim behind it.
SizeStep size_step(const Json &row, const std::vector<ArraySpec> &arguments) {
  const auto *list = row.get<Json::List>();
  std::string name;
  if (list == nullptr || list->empty() || !convert(list->front(), name))
    fail_type("less");
  auto operation = size_operation(name);
  size_t places = !operation                              ? 0
                  : *operation == SizeOperation::size     ? 2
                  : *operation <= SizeOperation::symbol   ? 1
                                                          : 0;
  std::vector<int64_t> numbers(list->size() - 1);
  bool is_right = operation.has_value() && numbers.size() == places;
  for (size_t i = 0; i < numbers.size(); ++i)
    is_right = is_right && convert((*list)[i + 1], numbers[i]);
  if (!is_right)
    bad_artifact("header: there is no size '" + name + "'");
  if (*operation != SizeOperation::size)
    return {*operation, numbers.empty() ? 0 : numbers.front()};
  auto argument = static_cast<size_t>(numbers[0]), dim = static_cast<size_t>(numbers[1]);
  if (argument >= arguments.size() || dim >= arguments[argument].shape.size())
    bad_artifact("header: a symbol is solved from a dimension that does not exist");
  for (size_t i = 0; i < argument; ++i)
    dim += arguments[i].shape.size();
  return {*operation, static_cast<int64_t>(dim)};
}

SymbolSpec symbol_spec(const Json &row, const std::vector<ArraySpec> &arguments) {
  SymbolSpec spec;
  spec.name = field<std::string>(row, "name");
  spec.minimum = field<int64_t>(row, "min");
  if (const Json *most = row.member("max"); most != nullptr && !most->is_null())
    spec.maximum = field<int64_t>(row, "max");
  const Json &solve = member_of(row, "solve");
  spec.argument = field<size_t>(solve, "argument");
  spec.dim = field<size_t>(solve, "dim");
  spec.scale = field<int64_t>(solve, "scale");
  spec.offset = field<int64_t>(solve, "offset");
  if (solve.member("less") != nullptr)
    for (const Json &step : list_of(solve, "less"))
      spec.less.push_back(size_step(step, arguments));
  return spec;
}

/// A program of one segment does not say which results it writes: all, `results` in number.
SegmentSpec segment_spec(const Json &row, size_t results) {
  SegmentSpec spec;
  for (const Json &check : rows(row, "checks"))
    spec.checks.push_back({field<std::string>(check, "kind"), field<std::string>(check, "message"),
                           field<std::vector<size_t>>(check, "operands")});
  spec.plan_words = field<size_t>(row, "plan_words");
  const Json &entry = member_of(row, "entry");
  spec.plan_entry = field<std::string>(entry, "plan");
  spec.run_entry = field<std::string>(entry, "run");
  if (row.member("results_written") != nullptr) {
    spec.results = field<std::vector<size_t>>(row, "results_written");
    for (const Json &symbol : rows(row, "symbols_read"))
      spec.symbols_read.push_back(field<std::string>(symbol, "name"));
    return spec;
  }
  for (size_t leaf = 0; leaf < results; ++leaf)
    spec.results.push_back(leaf);
  return spec;
}

std::vector<CallTensorSpec> call_tensors(const Json &call, const char *key) {
  std::vector<CallTensorSpec> specs;
  for (const Json &row : rows(call, key)) {
    specs.push_back({field<std::string>(row, "dtype"), field<int64_t>(row, "rank")});
    if (specs.back().rank < 0)
      bad_artifact("header: a tensor of a library call has a negative rank");
  }
  return specs;
}

CustomSpec custom_spec(const Json &custom, const CallSpec &call) {
  CustomSpec spec;
  for (const Json &row : rows(custom, "attributes")) {
    CallAttribute attribute{field<std::string>(row, "name"), field<std::string>(row, "dtype"),
                            field<bool>(row, "array"), 0, {}};
    store_values(attribute, field<std::vector<std::string>>(row, "values"));
    spec.attributes.push_back(std::move(attribute));
  }
  for (const auto &pair : field<std::vector<std::vector<size_t>>>(custom, "aliases")) {
    if (pair.size() != 2)
      fail_type("aliases");
    if (pair[0] + 1 >= call.results.size() || pair[1] >= call.operands.size())
      bad_artifact("header: an alias of '" + call.target + "' names a tensor that it does not have");
    spec.aliases.emplace_back(pair[0], pair[1]);
  }
  return spec;
}

CallSpec call_spec(const Json &row) {
  CallSpec spec;
  spec.target = field<std::string>(row, "target");
  spec.operands = call_tensors(row, "operands");
  spec.results = call_tensors(row, "results");
  if (spec.results.empty())
    bad_artifact("header: a library call has no results");
  if (row.member("custom") != nullptr)
    spec.custom = custom_spec(member_of(row, "custom"), spec);
  spec.groups = field_or<std::vector<std::vector<int64_t>>>(row, "groups", {});
  spec.where = field_or<std::string>(row, "where", "");
  const auto *attributes = member_of(row, "attributes").get<Json::Object>();
  if (attributes == nullptr)
    fail_type("attributes");
  for (const auto &[name, value] : *attributes) {
    const auto *number = value.get<int64_t>();
    if (number == nullptr)
      bad_artifact("header: an attribute of the library call '" + spec.target + "' is not an integer");
    spec.attributes.emplace_back(name, *number);
  }
  return spec;
}

PackSpec pack_spec(const Json &row) {
  PackSpec spec;
  spec.buffer = field<size_t>(row, "buffer");
  spec.dtype = dtype_of(row);
  spec.format = field<int64_t>(row, "format");
  spec.k = field<int64_t>(row, "k");
  spec.n = field<int64_t>(row, "n");
  spec.k_stride = field<int64_t>(row, "k_stride");
  spec.n_stride = field<int64_t>(row, "n_stride");
  spec.columns = field<int64_t>(row, "columns");
  return spec;
}

OperandByMap operand_by_map(const Json &row) {
  OperandByMap operand{{field<int64_t>(row, "pointer")}, field<int64_t>(row, "start"), {}};
  for (const auto &axis : field<std::vector<std::vector<int64_t>>>(row, "axes")) {
    if (axis.size() != 4)
      bad_artifact("header: an axis of a tensor map has " + std::to_string(axis.size()) + " numbers");
    operand.axes.push_back({{axis[0], axis[1]}, {axis[2], axis[3]}});
  }
  if (operand.axes.size() < 2)
    bad_artifact("header: a tensor map has no rows");
  return operand;
}

TensorMapKernel tensor_map_kernel(const Json &row) {
  return {field<std::string>(row, "name"),      field<int64_t>(row, "threads"),  field<int64_t>(row, "shared_bytes"),
          field<int64_t>(row, "element_bytes"), field<int64_t>(row, "box_rows"), field<int64_t>(row, "box_columns")};
}

KernelByMapsOfWords kernel_by_maps_of_words(const Json &row) {
  KernelByMapsOfWords spec{tensor_map_kernel(row), field<int64_t>(row, "least_rows"),
                           field<int64_t>(row, "is_persistent") != 0, {}};
  for (const Json &operand : rows(row, "operands"))
    spec.operands.push_back(operand_by_map(operand));
  if (spec.operands.empty())
    bad_artifact("header: a kernel by tensor maps has no operands");
  return spec;
}

KernelSpec kernel_spec(const Json &row) {
  KernelSpec spec;
  spec.name = field<std::string>(row, "name");
  spec.threads = field<int64_t>(row, "threads");
  spec.where = field<std::string>(row, "where");
  spec.fusion = field_or<std::string>(row, "fusion", "");
  if (row.member("by_maps") != nullptr) {
    const Json &by_maps = member_of(row, "by_maps");
    spec.by_maps = {tensor_map_kernel(by_maps), field<int64_t>(by_maps, "lhs_depth_inside") != 0,
                    field<int64_t>(by_maps, "rhs_depth_inside") != 0};
  }
  if (row.member("by_maps_of_words") != nullptr)
    spec.by_maps_of_words = kernel_by_maps_of_words(member_of(row, "by_maps_of_words"));
  return spec;
}

/// The name of the device that the code is for; empty for processors.
std::string check_target(const Json &header) {
  auto format = field_or<int64_t>(header, "format", 0);
  if (format < 1 || format > kHeaderFormat)
    bad_artifact("header format " + std::to_string(format) + "; this release reads formats 1 to " +
                 std::to_string(kHeaderFormat));
  const Json *target = header.member("target");
  const Json *triple = target != nullptr ? target->member("triple") : nullptr;
  if (triple == nullptr || triple->get<std::string>() == nullptr)
    bad_artifact("header: 'target' is missing");
  const auto &text = *triple->get<std::string>();
  std::string architecture = text.substr(0, text.find('-'));
  if (architecture != kArchitecture)
    bad_artifact("made for " + architecture + "; this machine is " + std::string(kArchitecture));
  std::vector<std::string> features;
  if (const Json *list = target->member("features"); list != nullptr && !convert(*list, features))
    bad_artifact("header: 'features' is not a list of names");
  if (auto missing = missing_features(features); !missing.empty())
    bad_artifact("made for a processor with " + joined(missing) +
                 ", which this one lacks: " + kCompileForAll);
  const Json *name = target->member("name");
  return name == nullptr || name->is_null() ? "" : field<std::string>(*target, "name");
}

int64_t replicas_of(const Json &header) {
  auto count = field_or<int64_t>(header, "replicas", 1);
  if (count < 1)
    bad_artifact("header: 'replicas' is no number of devices: " + std::to_string(count));
  return count;
}

} // namespace

Program program_of(const Json &header) {
  Program program;
  program.name = field<std::string>(header, "name");
  for (const Json &row : rows(header, "arguments"))
    program.arguments.push_back(array_spec(row));
  for (const Json &row : rows(header, "symbols"))
    program.symbols.push_back(symbol_spec(row, program.arguments));
  for (const Json &row : rows(header, "results"))
    program.results.push_back(array_spec(row));
  for (const Json &row : rows(header, "constants"))
    program.constants.push_back({field<int64_t>(row, "offset"), field<int64_t>(row, "bytes")});
  program.segments.push_back(segment_spec(header, program.results.size()));
  for (const Json &row : rows_or_none(header, "segments"))
    program.segments.push_back(segment_spec(row, 0));
  for (const Json &row : rows_or_none(header, "calls"))
    program.calls.push_back(call_spec(row));
  for (const Json &row : rows_or_none(header, "kernels"))
    program.kernels.push_back(kernel_spec(row));
  for (const Json &row : rows_or_none(header, "packs"))
    program.packs.push_back(pack_spec(row));
  if (!program.packs.empty())
    program.packed_only = field<std::vector<size_t>>(header, "packed_only");
  program.is_prepacked = field_or<bool>(header, "prepacked", false);
  program.digest = header_digest(header);
  return program;
}

Json parse_header(std::string_view text) {
  if (text.size() > kMostHeaderBytes)
    bad_artifact("the header has more than " + std::to_string(kMostHeaderBytes) + " bytes");
  Json header = Json::parse(text);
  if (header.get<Json::Object>() == nullptr)
    bad_artifact("the header is not a JSON object");
  return header;
}

Header read_header(const Json &json) {
  Header header;
  header.device = check_target(json);
  header.replicas = replicas_of(json);
  header.program = program_of(json);
  return header;
}

} // namespace disc
