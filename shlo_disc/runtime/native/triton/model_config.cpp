// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/model_config.h"

#include "core/error.h"
#include "core/words.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace disc::triton {

namespace {

constexpr TypeRow kTypes[] = {
    {"bool", "TYPE_BOOL", kBool, 1},      {"uint8", "TYPE_UINT8", kUint8, 1},    {"uint16", "TYPE_UINT16", kUint16, 2},
    {"uint32", "TYPE_UINT32", kUint32, 4}, {"uint64", "TYPE_UINT64", kUint64, 8}, {"int8", "TYPE_INT8", kInt8, 1},
    {"int16", "TYPE_INT16", kInt16, 2},   {"int32", "TYPE_INT32", kInt32, 4},    {"int64", "TYPE_INT64", kInt64, 8},
    {"float16", "TYPE_FP16", kFp16, 2},   {"float32", "TYPE_FP32", kFp32, 4},    {"float64", "TYPE_FP64", kFp64, 8},
    {"bfloat16", "TYPE_BF16", kBf16, 2},
};

bool is_symbol(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 && std::ranges::all_of(text, is_in_word);
}

std::string quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      out += std::string("\\u00") + digits[c >> 4 & 15] + digits[c & 15];
    else
      out += c;
  return out + '"';
}

std::string list(const std::vector<int64_t> &sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// The sizes that a configuration states: where requests are joined, all but the first.
std::vector<int64_t> stated_sizes(const Tensor &tensor, int64_t max_batch_size) {
  return {tensor.sizes.begin() + (max_batch_size > 0 ? 1 : 0), tensor.sizes.end()};
}

/// An element of "input" or "output". Configurations cannot state that there are no dims: [1] is reshaped to none.
std::string described(const Tensor &tensor, int64_t max_batch_size, bool is_input) {
  std::vector<int64_t> sizes = stated_sizes(tensor, max_batch_size);
  bool is_ragged = is_input && max_batch_size > 0 && std::ranges::find(sizes, -1) != sizes.end();
  return "{\"name\": " + quoted(tensor.name) + ", \"data_type\": " + quoted(type_of(tensor.dtype)->config) +
         ", \"dims\": " + (sizes.empty() ? "[1], \"reshape\": {\"shape\": []}" : list(sizes)) +
         (is_ragged ? ", \"allow_ragged_batch\": true}" : "}");
}

std::string described(const std::vector<Tensor> &tensors, int64_t max_batch_size, bool is_input) {
  std::string text;
  for (const Tensor &tensor : tensors)
    text += (text.empty() ? "" : ", ") + described(tensor, max_batch_size, is_input);
  return "[" + text + "]";
}

std::string names_of(const std::vector<Tensor> &tensors) {
  std::string text;
  for (const Tensor &tensor : tensors)
    text += (text.empty() ? "'" : ", '") + tensor.name + "'";
  return text.empty() ? "none" : text;
}

bool has_entries(const Json &config, std::string_view part) {
  const Json *member = config.member(part);
  const Json::List *entries = member != nullptr ? member->get<Json::List>() : nullptr;
  return entries != nullptr && !entries->empty();
}

std::string text_of(const Json &entry, std::string_view name) {
  const Json *member = entry.member(name);
  const std::string *text = member != nullptr ? member->get<std::string>() : nullptr;
  return text != nullptr ? *text : "";
}

/// The sizes that requests have behind the batch: those of a reshape, where there is one.
std::vector<int64_t> sizes_of(const Json &entry) {
  const Json *reshape = entry.member("reshape");
  const Json *dims = reshape != nullptr && !reshape->is_null() ? reshape->member("shape") : entry.member("dims");
  const Json::List *items = dims != nullptr ? dims->get<Json::List>() : nullptr;
  std::vector<int64_t> sizes;
  if (items != nullptr)
    for (const Json &item : *items)
      sizes.push_back(integer(&item).value_or(-1));
  return sizes;
}

/// Tells whether a configuration may state these sizes: it may narrow a symbolic size.
bool narrows(const std::vector<int64_t> &stated, const std::vector<int64_t> &sizes) {
  return std::ranges::equal(stated, sizes, [](int64_t mine, int64_t its) { return mine == its || its == -1; });
}

/// What is wrong with an entry of "input" or "output", whose tensor is `tensor`.
std::string misfit(const Tensor &tensor, const std::string &which, int64_t max_batch_size, const Json &entry,
                   bool is_input) {
  std::string_view type = type_of(tensor.dtype)->config;
  std::vector<int64_t> sizes = stated_sizes(tensor, max_batch_size), found = sizes_of(entry);
  bool fits = text_of(entry, "data_type") == type && narrows(found, sizes);
  if (fits)
    return "";
  return which + " has data_type " + text_of(entry, "data_type") + " and sizes " + list(found) +
         (max_batch_size > 0 ? " behind the batch" : "") + ", and the program's have " + std::string(type) + " and " +
         list(sizes) + ": write " + described(tensor, max_batch_size, is_input) + ", or leave it out with all others";
}

/// What is wrong with "input" or "output".
std::string misfit(const std::vector<Tensor> &tensors, const char *part, int64_t max_batch_size, const Json &config) {
  bool is_input = part == std::string_view("input");
  std::vector<std::string> stated;
  for (const Json &entry : *config.member(part)->get<Json::List>()) {
    std::string name = text_of(entry, "name"), which = std::string("the ") + part + " '" + name + "'";
    auto tensor = std::ranges::find(tensors, name, &Tensor::name);
    if (tensor == tensors.end())
      return which + " is none of the program, which has " + names_of(tensors) + ": name one of them";
    if (std::string text = misfit(*tensor, which, max_batch_size, entry, is_input); !text.empty())
      return text;
    stated.push_back(std::move(name));
  }
  for (const Tensor &tensor : tensors)
    if (is_input && std::ranges::find(stated, tensor.name) == stated.end())
      return "the input '" + tensor.name + "' is missing: add " + described(tensor, max_batch_size, true);
  return "";
}

} // namespace

Tensor::Tensor(std::string path, std::string dtype, std::vector<std::string> texts)
    : path(std::move(path)), dtype(std::move(dtype)), texts(std::move(texts)) {
  for (const std::string &text : this->texts) {
    Json value{Json::Value(text)};
    sizes.push_back(integer(&value).value_or(-1));
  }
}

const TypeRow *type_of(std::string_view dtype) {
  auto found = std::ranges::find(kTypes, dtype, &TypeRow::dtype);
  return found != std::end(kTypes) ? found : nullptr;
}

void name_tensors(Signature &signature, const std::vector<std::string> &names) {
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    bool is_unique = !names[i].empty() && std::ranges::count(names, names[i]) == 1;
    signature.inputs[i].name = is_unique ? names[i] : signature.inputs[i].path;
  }
  for (Tensor &output : signature.outputs)
    output.name = output.path;
}

void check_types(const Signature &signature) {
  for (const auto *tensors : {&signature.inputs, &signature.outputs})
    for (const Tensor &tensor : *tensors)
      if (type_of(tensor.dtype) == nullptr)
        bad_artifact(tensor.path + " has elements of type " + tensor.dtype +
                     ", which Triton does not have: compile a function that converts them, such as complex numbers to "
                     "pairs of floats");
}

std::string no_batch_reason(const Signature &signature) {
  const Tensor *first = nullptr;
  for (const auto *tensors : {&signature.inputs, &signature.outputs})
    for (const Tensor &tensor : *tensors) {
      if (tensor.texts.empty() || !is_symbol(tensor.texts[0]))
        return "the first dimension of '" + tensor.name + "' is " +
               (tensor.texts.empty() ? "missing" : tensor.texts[0] + ", not a symbol");
      first = first != nullptr ? first : &tensor;
      if (tensor.texts[0] != first->texts[0])
        return "the first dimension of '" + first->name + "' is " + first->texts[0] + ", and that of '" + tensor.name +
               "' is " + tensor.texts[0];
      for (size_t i = 1; i < tensor.texts.size(); ++i)
        if (has_word(tensor.texts[i], first->texts[0]))
          return "the size " + tensor.texts[i] + " of '" + tensor.name + "' depends on " + first->texts[0];
    }
  return signature.inputs.empty() ? "it has no inputs" : "";
}

std::string config_text(const Signature &signature, int64_t max_batch_size, std::string_view scheduler) {
  return "{\"max_batch_size\": " + std::to_string(max_batch_size) +
         (scheduler.empty() ? "" : ", " + quoted(scheduler) + ": {}") +
         ", \"input\": " + described(signature.inputs, max_batch_size, true) +
         ", \"output\": " + described(signature.outputs, max_batch_size, false) + "}";
}

bool states_tensors(const Json &config) { return has_entries(config, "input") || has_entries(config, "output"); }

std::string misfit(const Signature &signature, int64_t max_batch_size, const Json &config) {
  if (has_entries(config, "input") != has_entries(config, "output"))
    return "it states inputs or outputs alone: state both, or neither, which has them filled in";
  if (!states_tensors(config))
    return "";
  std::string text = misfit(signature.inputs, "input", max_batch_size, config);
  return text.empty() ? misfit(signature.outputs, "output", max_batch_size, config) : text;
}

std::optional<int64_t> integer(const Json *value) {
  if (value == nullptr)
    return std::nullopt;
  if (const auto *number = value->get<int64_t>())
    return *number;
  const auto *text = value->get<std::string>();
  int64_t number = 0;
  if (text == nullptr || std::from_chars(text->data(), text->data() + text->size(), number).ptr != text->data() + text->size())
    return std::nullopt;
  return text->empty() ? std::nullopt : std::optional(number);
}

} // namespace disc::triton
