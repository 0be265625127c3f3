// SPDX-License-Identifier: Apache-2.0
//
// YAML through yaml-cpp's events, so that our own limits hold while the text
// is read: yaml-cpp itself bounds neither size nor the expansion of aliases.
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "api/parser.h"
#include "api/quote.h"
#include "api/scalar.h"
#include "api/tree_builder.h"

namespace devmgr::api {
namespace {

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

/// Leaves yaml-cpp from inside a callback; caught in ParseYaml.
struct Stop {};

int LineOf(const YAML::Mark& mark) { return mark.line + 1; }

/// yaml-cpp 0.7 reads the escapes `\N` and `\_` (U+0085 and U+00A0) as one byte
/// each. All else is UTF-8 by now, which tells them.
std::string WithEscapesAsUtf8(std::string_view text) {
  std::string mended;
  for (;;) {
    const std::size_t at = FindInvalidUtf8(text);
    mended += text.substr(0, at);
    if (at == std::string_view::npos) return mended;
    mended += '\xC2';
    mended += text[at];
    text.remove_prefix(at + 1);
  }
}

class YamlHandler : public YAML::EventHandler {
 public:
  explicit YamlHandler(TreeBuilder& builder) : builder_(builder) {}

  /// At a stray `}` or `,` between documents yaml-cpp 0.7 finds an empty one,
  /// takes nothing, and would do so for ever.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == document_position_) {
      Check(builder_.Fail(LineOf(mark),
                          "not YAML: unexpected text between "
                          "documents"));
    }
    document_position_ = mark.pos;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Value value;
    value.line = LineOf(mark);
    Check(builder_.AddScalar(std::move(value), anchor));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Check(builder_.AddAlias(anchor, LineOf(mark)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& text) override {
    Value value;
    if (tag == "?") {
      value = ResolvePlainScalar(text, LineOf(mark));
    } else {
      value = Tagged(tag, WithEscapesAsUtf8(text), LineOf(mark));
    }
    Check(builder_.AddScalar(std::move(value), anchor));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Check(builder_.BeginList(LineOf(mark), anchor));
  }
  void OnSequenceEnd() override { Check(builder_.End()); }

  void OnMapStart(const YAML::Mark& mark, const std::string&,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Check(builder_.BeginMap(LineOf(mark), anchor));
  }
  void OnMapEnd() override { Check(builder_.End()); }

 private:
  static void Check(bool ok) {
    if (!ok) throw Stop();
  }

  /// A quoted scalar (tag `!`) or one with a tag of its own. Tags of the core
  /// schema say what the text is; all others leave it a string.
  Value Tagged(const std::string& tag, const std::string& text, int line) {
    Value value;
    value.kind = Value::Kind::kString;
    value.line = line;
    value.text = text;
    if (!tag.starts_with(kCoreTag)) return value;
    const std::string_view type = std::string_view(tag).substr(kCoreTag.size());
    const Value resolved = ResolvePlainScalar(text, line);
    const bool fits =
        (type == "int" && resolved.kind == Value::Kind::kInteger) ||
        (type == "float" && (resolved.kind == Value::Kind::kFloat ||
                             resolved.kind == Value::Kind::kInteger)) ||
        (type == "bool" && resolved.kind == Value::Kind::kBool) ||
        (type == "null" && resolved.kind == Value::Kind::kNull);
    if (fits) return resolved;
    if (type == "int" || type == "float" || type == "bool" || type == "null" ||
        type == "binary") {
      builder_.Fail(
          line, fmt::format("tag '!!{}' does not fit {}", type, Quoted(text)));
      throw Stop();
    }
    return value;
  }

  TreeBuilder& builder_;
  int document_position_ = -1;
};

}  // namespace

ParsedText ParseYaml(std::string_view text) {
  ParsedText result;
  TreeBuilder builder;
  YamlHandler handler(builder);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
      ValuePtr document = builder.TakeDocument();
      if (document != nullptr && document->kind != Value::Kind::kNull) {
        result.documents.push_back(std::move(document));
      }
    }
    return result;
  } catch (const Stop&) {
    result.error = builder.error();
    result.error_line = builder.error_line();
  } catch (const YAML::Exception& error) {
    // It quotes characters of the text, and its own mark for the end of it.
    result.error =
        fmt::format("not YAML: {}", Readable(error.msg, kMaxReasonBytes));
    result.error_line = error.mark.is_null() ? 0 : LineOf(error.mark);
  } catch (const std::exception& error) {
    result.error =
        fmt::format("not YAML: {}", Readable(error.what(), kMaxReasonBytes));
  }
  result.documents.clear();
  return result;
}

}  // namespace devmgr::api
