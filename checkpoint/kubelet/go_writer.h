// SPDX-License-Identifier: Apache-2.0
//
// Two texts of one value: JSON as Go's encoding/json writes it, and the dump
// that the kubelet hashes.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "checkpoint/kubelet/checksum.h"
#include "common/status.h"

namespace devmgr::kubelet_checkpoint {

/// JSON, byte by byte as Go's encoding/json writes it: no white space; `<`,
/// `>`, `&`, U+2028 and U+2029 escaped. Members of structs come in the order in
/// which they are put here, those of maps sorted by the bytes of their keys:
/// both are the caller's to keep.
class GoJsonWriter {
 public:
  /// Brackets, commas, keys of structs, numbers: text that is JSON already.
  void Raw(std::string_view json) { text_ += json; }
  void String(std::string_view text);
  /// Padded base64, as Go has it for bytes.
  void Bytes(std::string_view bytes);

  /// `[...]` or `{...}` of what `append` writes for each item; null for
  /// nothing.
  template <typename Items, typename Append>
  void Sequence(std::string_view brackets, const Items& items, Append append) {
    if (!items) return Raw("null");
    text_ += brackets.front();
    std::string_view separator;
    for (const auto& item : *items) {
      text_ += separator;
      separator = ",";
      append(item);
    }
    text_ += brackets.back();
  }
  template <typename List>
  void Strings(const List& texts) {
    Sequence("[]", texts, [this](const auto& text) { String(text); });
  }

  std::size_t size() const { return text_.size(); }

  /// What was written, of which errors say that it is `file`.
  ///   InvalidArgument  a text was not UTF-8: Go would write other bytes than
  ///                    the ones that it hashes, and refuse its own file; or
  ///                    more than kMaxFileBytes
  absl::StatusOr<std::string> Take(std::string_view file) &&;

 private:
  std::string text_;
  std::string not_utf8_;
};

/// FNV-1a of the dump of a value by the Go package spew with the kubelet's
/// options (`k8s.io/utils/dump`, ForHash): members of structs with their types,
/// texts as they are, maps sorted by their keys as Go compares them. The dump
/// itself, which can be many times as long as the file, is not kept.
class GoDump {
 public:
  void Raw(std::string_view text) { hash_ = ExtendFnv1a32(hash_, text); }

  /// `name:(type)`, in front of the value of a member of a struct.
  void Type(std::string_view name, std::string_view type) {
    Raw(name);
    Raw(":(");
    Raw(type);
    Raw(")");
  }
  void Text(std::string_view name, std::string_view text) {
    Type(name, "string");
    Raw(text);
  }

  /// `[...]` or `map[...]` of what `append` writes for each item; `<nil>` for
  /// nothing.
  template <typename Items, typename Append>
  void Sequence(std::string_view begin, const Items& items, Append append) {
    if (!items) return Raw("<nil>");
    Raw(begin);
    std::string_view separator;
    for (const auto& item : *items) {
      Raw(separator);
      separator = " ";
      append(item);
    }
    Raw("]");
  }
  template <typename List>
  void Texts(const List& texts) {
    Sequence("[", texts, [this](std::string_view text) { Raw(text); });
  }

  std::uint32_t hash() const { return hash_; }

 private:
  std::uint32_t hash_ = kFnv1a32OfNothing;
};

}  // namespace devmgr::kubelet_checkpoint
