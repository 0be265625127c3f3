// SPDX-License-Identifier: Apache-2.0
#include "cdi/json_node.h"

#include <algorithm>
#include <exception>

#include "api/quote.h"
#include "common/foreign_json.h"
#include "common/status.h"

namespace devmgr::cdi {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
/// Bytes of what the JSON library says.
constexpr std::size_t kMaxReason = 300;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Walks over JSON that is known to be correct.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ == text_.size(); }
  char Peek() const { return text_[at_]; }
  void Skip() { ++at_; }

  std::string_view Blanks() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  /// A value of any depth.
  std::string_view Value() {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        SkipString();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
      if (depth == 0 && c != '}' && c != ']') SkipScalar();
    } while (depth > 0);
    return text_.substr(begin, at_ - begin);
  }

  /// A member's name with the colon and the blanks up to the value.
  std::string_view Key() {
    const std::size_t begin = at_;
    SkipString();
    Blanks();
    ++at_;
    Blanks();
    return text_.substr(begin, at_ - begin);
  }

 private:
  void SkipString() {
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }
  void SkipScalar() {
    at_ = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

/// Whether a member's text begins with this name, in whatever way it is
/// written.
bool IsNamed(std::string_view member, std::string_view key) {
  const std::string_view quoted = member.substr(0, member.rfind('"') + 1);
  if (quoted.find('\\') == std::string_view::npos) {
    return quoted.substr(1, quoted.size() - 2) == key;
  }
  return Json::parse(quoted).get<std::string>() == key;
}

/// Whether a list or an object is written as empty.
bool IsBlankWithin(std::string_view text) {
  return text.find_first_not_of(kBlanks, 1) + 1 == text.size();
}

std::string WhyNotJson(std::string_view text) {
  try {
    return Json::parse(text).type_name();
  } catch (const std::exception& error) {
    return api::Readable(error.what(), kMaxReason);
  }
}

}  // namespace

absl::StatusOr<JsonNode> JsonNode::Parse(std::string_view text) {
  if (IsJsonTooDeep(text)) {
    return InvalidArgumentError("JSON is nested deeper than {} levels",
                                kMaxJsonDepth);
  }
  if (HasNul(text)) return InvalidArgumentError("not JSON: it has a NUL byte");
  if (!Json::accept(text)) {
    return InvalidArgumentError("not JSON: {}", WhyNotJson(text));
  }
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  Scanner scanner(text);
  scanner.Blanks();
  return JsonNode(scanner.Value());
}

absl::StatusOr<JsonNode> JsonNode::Make(const Json& json) {
  DEVMGR_ASSIGN_OR_RETURN(std::string text, TextOf(json));
  const auto own = std::make_shared<const std::string>(std::move(text));
  JsonNode node(*own);
  node.own_ = own;
  return node;
}

Json JsonNode::Read() const {
  std::string text;
  AppendTo(&text);
  return Json::parse(text);
}

absl::StatusOr<JsonNode*> JsonNode::Find(std::string_view key) {
  if (!IsObject()) {
    return InvalidArgumentError("must be an object to have {}",
                                api::Quoted(key));
  }
  JsonNode* found = nullptr;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!IsNamed(frames_[i].key, key)) continue;
    if (found != nullptr) {
      return InvalidArgumentError("{} is there twice", api::Quoted(key));
    }
    found = &values_[i];
  }
  return found != nullptr && found->IsNull() ? nullptr : found;
}

absl::StatusOr<JsonNode*> JsonNode::FindOrAdd(std::string_view key,
                                              std::string_view empty) {
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * found, Find(key));
  if (found == nullptr) {
    DEVMGR_RETURN_IF_ERROR(Set(key, JsonNode(empty)));
    return Find(key);
  }
  if (found->Opening() == empty.front()) return found;
  return InvalidArgumentError("{} must be {}", api::Quoted(key),
                              empty == "{}" ? "an object" : "a list");
}

absl::Status JsonNode::Set(std::string_view key, JsonNode value) {
  DEVMGR_RETURN_IF_ERROR(Find(key).status());
  for (std::size_t i = 0; i < size(); ++i) {
    if (!IsNamed(frames_[i].key, key)) continue;
    values_[i] = std::move(value);
    return absl::OkStatus();
  }
  DEVMGR_ASSIGN_OR_RETURN(std::string name, JsonString(key));
  const std::string_view like =
      frames_.empty() ? ":" : std::string_view(frames_.back().key);
  name += like.substr(like.rfind('"') + 1);
  Add(std::move(name), std::move(value));
  return absl::OkStatus();
}

void JsonNode::Add(std::string key, JsonNode value) {
  Values().push_back(std::move(value));
  Frame frame{{}, std::move(key), {}};
  if (!frames_.empty()) {
    // As the others; what ends the list moves on to the new last one.
    frame.lead = frames_.back().lead;
    frame.trail = frames_.back().trail;
    frames_.back().trail = frames_.size() > 1 ? frames_.front().trail : "";
  }
  frames_.push_back(std::move(frame));
}

void JsonNode::Erase(std::size_t index) {
  if (index + 1 == size() && index > 0) {
    frames_[index - 1].trail = frames_[index].trail;
  } else if (index == 0 && size() > 1) {
    frames_[1].lead = frames_[0].lead;
  }
  const auto offset = static_cast<std::ptrdiff_t>(index);
  frames_.erase(frames_.begin() + offset);
  values_.erase(values_.begin() + offset);
}

void JsonNode::Permute(const std::vector<std::size_t>& order) {
  std::vector<JsonNode> values;
  values.reserve(order.size());
  for (const std::size_t index : order) {
    values.push_back(std::move(Values()[index]));
  }
  values_ = std::move(values);
}

void JsonNode::AppendTo(std::string* out) const {
  if (!is_open_ || (values_.empty() && IsBlankWithin(text_))) {
    *out += text_;
    return;
  }
  *out += Opening();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i > 0) *out += ',';
    *out += frames_[i].lead;
    *out += frames_[i].key;
    values_[i].AppendTo(out);
    *out += frames_[i].trail;
  }
  *out += IsObject() ? '}' : ']';
}

std::vector<JsonNode>& JsonNode::Values() {
  if (!is_open_) Open();
  return values_;
}

void JsonNode::Open() {
  is_open_ = true;
  Scanner scanner(text_);
  do {
    scanner.Skip();
    Frame frame{scanner.Blanks(), "", {}};
    if (scanner.Peek() == '}' || scanner.Peek() == ']') return;
    if (IsObject()) frame.key = std::string(scanner.Key());
    values_.push_back(JsonNode(scanner.Value()));
    frame.trail = scanner.Blanks();
    frames_.push_back(std::move(frame));
  } while (scanner.Peek() == ',');
}

}  // namespace devmgr::cdi
