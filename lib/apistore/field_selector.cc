// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "apistore/selectors.h"
#include "common/status.h"

namespace devmgr::apistore {
namespace {

/// `text` cut at commas that no `\` stands before; the escapes stay.
std::vector<std::string_view> CutTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i + 1 < text.size() && text[i] == '\\') {
      ++i;
    } else if (i >= text.size() || text[i] == ',') {
      const std::string_view term = text.substr(begin, i - begin);
      if (!term.empty()) terms.push_back(term);
      begin = i + 1;
    }
  }
  return terms;
}

/// A value without its escapes; nothing when it is written wrongly.
std::optional<std::string> Unescape(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '=' || text[i] == ',') return std::nullopt;
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (text[i] != '\\' && text[i] != ',' && text[i] != '=') {
      return std::nullopt;
    }
    value += text[i];
  }
  return value;
}

struct CutTerm {
  std::string_view label;
  std::string_view value;
  bool equal = true;
};

std::optional<CutTerm> CutAtOperator(std::string_view term) {
  for (std::size_t i = 0; i < term.size(); ++i) {
    const std::string_view rest = term.substr(i);
    for (const std::string_view op : {"!=", "==", "="}) {
      if (rest.substr(0, op.size()) == op) {
        return CutTerm{term.substr(0, i), rest.substr(op.size()), op != "!="};
      }
    }
  }
  return std::nullopt;
}

std::optional<SelectableField> FieldOf(const ResourceType& type,
                                       std::string_view label) {
  if (label == "metadata.name") {
    return SelectableField{"metadata.name", "/metadata/name", ""};
  }
  if (label == "metadata.namespace" && type.namespaced) {
    return SelectableField{"metadata.namespace", "/metadata/namespace", ""};
  }
  for (const SelectableField& field : type.fields) {
    if (field.label == label) return field;
  }
  return std::nullopt;
}

std::string TextAt(const Json& object, const Json::json_pointer& pointer,
                   const std::string& absent) {
  if (!object.contains(pointer)) return absent;
  const Json& value = object.at(pointer);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return absent;
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<FieldSelector> FieldSelector::Parse(std::string_view text,
                                                   const ResourceType& type) {
  FieldSelector selector;
  for (const std::string_view term : CutTerms(text)) {
    const std::optional<CutTerm> cut = CutAtOperator(term);
    if (!cut.has_value()) {
      return InvalidArgumentError(
          "invalid selector: '{}'; can't understand '{}'", text, term);
    }
    std::optional<std::string> value = Unescape(cut->value);
    if (!value.has_value()) {
      return InvalidArgumentError(
          "invalid selector: '{}'; can't understand '{}'", text, term);
    }
    const std::optional<SelectableField> field = FieldOf(type, cut->label);
    if (!field.has_value()) {
      return InvalidArgumentError("field label not supported: {}", cut->label);
    }
    selector.terms_.push_back({Json::json_pointer(field->pointer),
                               field->absent, *std::move(value), cut->equal});
  }
  return selector;
}

bool FieldSelector::Matches(const Json& object) const {
  for (const Term& term : terms_) {
    const bool same = TextAt(object, term.pointer, term.absent) == term.value;
    if (same != term.equal) return false;
  }
  return true;
}

}  // namespace devmgr::apistore
