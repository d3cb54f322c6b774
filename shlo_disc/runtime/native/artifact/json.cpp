// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "json.h"

#include "core/error.h"

#include <charconv>

namespace disc {

namespace {

constexpr int kMostDepth = 512; // of lists and objects

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json document() {
    Json value = parse_value(0);
    skip_spaces();
    if (at_ != text_.size())
      fail("extra data");
    return value;
  }

private:
  [[noreturn]] void fail(const char *what) const {
    bad_artifact(std::string("the header is not JSON: ") + what + " at byte " + std::to_string(at_));
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected)
      return false;
    at_ += expected.size();
    return true;
  }

  /// A character after spaces.
  bool take_sign(char sign) {
    skip_spaces();
    return take(std::string_view(&sign, 1));
  }

  Json parse_value(int depth) {
    if (depth > kMostDepth)
      fail("too deep");
    skip_spaces();
    if (take("{"))
      return parse_object(depth);
    if (take("["))
      return parse_list(depth);
    if (take("\""))
      return Json(Json::Value(parse_string()));
    if (take("null"))
      return Json();
    if (take("true"))
      return Json(Json::Value(true));
    if (take("false"))
      return Json(Json::Value(false));
    return parse_number();
  }

  Json parse_list(int depth) {
    Json::List items;
    if (take_sign(']'))
      return Json(Json::Value(std::move(items)));
    do
      items.push_back(parse_value(depth + 1));
    while (take_sign(','));
    if (!take_sign(']'))
      fail("expected ',' or ']'");
    return Json(Json::Value(std::move(items)));
  }

  Json parse_object(int depth) {
    Json::Object members;
    if (take_sign('}'))
      return Json(Json::Value(std::move(members)));
    do {
      if (!take_sign('"'))
        fail("expected a name");
      std::string name = parse_string();
      if (!take_sign(':'))
        fail("expected ':'");
      members.emplace_back(std::move(name), parse_value(depth + 1));
    } while (take_sign(','));
    if (!take_sign('}'))
      fail("expected ',' or '}'");
    return Json(Json::Value(std::move(members)));
  }

  size_t take_digits() {
    size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
      ++at_;
    return at_ - first;
  }

  Json parse_number() {
    size_t first = at_;
    take("-");
    bool leading_zero = take("0");
    if (!leading_zero && take_digits() == 0)
      fail("expected a value");
    bool is_whole = true;
    if (take(".")) {
      is_whole = false;
      if (take_digits() == 0)
        fail("expected a digit");
    }
    if (take("e") || take("E")) {
      is_whole = false;
      if (!take("+"))
        take("-");
      if (take_digits() == 0)
        fail("expected a digit");
    }
    std::string_view number = text_.substr(first, at_ - first);
    int64_t whole = 0;
    if (is_whole && std::from_chars(number.data(), number.data() + number.size(), whole).ec == std::errc())
      return Json(Json::Value(whole));
    double value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    return Json(Json::Value(value));
  }

  uint32_t parse_unit() {
    uint32_t unit = 0;
    const char *begin = text_.data() + at_;
    if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, unit, 16).ptr != begin + 4)
      fail("expected four hexadecimal digits");
    at_ += 4;
    return unit;
  }

  /// What follows "\u": a character, or the two halves of one. Half a character alone is no text.
  uint32_t parse_code_point() {
    uint32_t first = parse_unit();
    if (first < 0xD800 || first > 0xDFFF)
      return first;
    uint32_t second = first < 0xDC00 && take("\\u") ? parse_unit() : 0;
    if (second < 0xDC00 || second > 0xDFFF)
      fail("half a character");
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  static void append_utf8(std::string &text, uint32_t point) {
    auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
    if (point < 0x80)
      return put(point);
    if (point < 0x800) {
      put(0xC0 | point >> 6);
    } else {
      if (point < 0x10000) {
        put(0xE0 | point >> 12);
      } else {
        put(0xF0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3F));
      }
      put(0x80 | (point >> 6 & 0x3F));
    }
    put(0x80 | (point & 0x3F));
  }

  void parse_escape(std::string &text) {
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (take("u"))
      return append_utf8(text, parse_code_point());
    size_t found = at_ < text_.size() ? names.find(text_[at_]) : std::string_view::npos;
    if (found == std::string_view::npos)
      fail("an unknown escape");
    text += meanings[found];
    ++at_;
  }

  /// The bytes of one character of UTF-8, shortest form, no surrogates.
  void take_utf8(std::string &text) {
    auto byte = [&](size_t i) { return at_ + i < text_.size() ? static_cast<uint8_t>(text_[at_ + i]) : uint8_t{0}; };
    uint8_t lead = byte(0);
    size_t count = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    uint32_t point = lead & (0xFFu >> (count + 1));
    bool is_right = lead >= 0xC2 && lead <= 0xF4;
    for (size_t i = 1; i < count; ++i) {
      is_right &= (byte(i) & 0xC0) == 0x80;
      point = point << 6 | (byte(i) & 0x3Fu);
    }
    constexpr uint32_t least[] = {0x80, 0x800, 0x10000};
    if (!is_right || point < least[count - 2] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
      fail("text that is not UTF-8");
    text += text_.substr(at_, count);
    at_ += count;
  }

  /// What follows the opening quote.
  std::string parse_string() {
    std::string text;
    while (at_ < text_.size()) {
      auto byte = static_cast<uint8_t>(text_[at_]);
      if (take("\""))
        return text;
      if (byte < 0x20)
        fail("a control character");
      if (take("\\"))
        parse_escape(text);
      else if (byte >= 0x80)
        take_utf8(text);
      else
        text += text_[at_++];
    }
    fail("a string without end");
  }

  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

Json Json::parse(std::string_view text) { return Parser(text).document(); }

const Json *Json::member(std::string_view name) const {
  const auto *object = get<Object>();
  if (object != nullptr)
    for (auto entry = object->rbegin(); entry != object->rend(); ++entry)
      if (entry->first == name)
        return &entry->second;
  return nullptr;
}

} // namespace disc
