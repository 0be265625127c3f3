// SPDX-License-Identifier: Apache-2.0
//
// How results are printed: tables for people, documents for programs.
#pragma once

#include <devmgr/types.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "options.h"

namespace devmgr::ctl {

/// Keeps the members in the order they are made.
using Json = nlohmann::ordered_json;

inline constexpr char kApiVersion[] = "devmgr/v1alpha1";

/// Whether colours are wanted: the flag wins, then NO_COLOR, TERM and whether
/// stdout is a terminal.
bool WantsColor(const Options& options, const Environment& environment);

/// What a text is, for readers that see colours. Never the only sign of it.
enum class Tone { kPlain, kTitle, kGood, kWarn, kBad };

std::string Painted(const std::string& text, Tone tone, bool color);

/// Foreign text as it stands in tables: cleaned; `<none>` when it is empty.
std::string Shown(const std::string& text);

struct Cell {
  Cell(std::string cell_text, Tone cell_tone = Tone::kPlain)  // NOLINT
      : text(std::move(cell_text)), tone(cell_tone) {}
  Cell(const char* cell_text, Tone cell_tone = Tone::kPlain)  // NOLINT
      : text(cell_text), tone(cell_tone) {}
  Cell(std::string_view cell_text, Tone cell_tone = Tone::kPlain)  // NOLINT
      : text(cell_text), tone(cell_tone) {}
  template <class Kind>
  Cell(const Name<Kind>& name) : text(name.value) {}  // NOLINT
  std::string text;  ///< Empty: shown as `<none>`.
  Tone tone = Tone::kPlain;
};

/// Columns three blanks apart, never cut off. `Print` may be called again and
/// again, for rows that come later; the header is printed once.
class Table {
 public:
  /// `min_widths`: for rows that come later; may be shorter than `headers`.
  Table(std::vector<std::string> headers, bool no_headers, bool color,
        std::vector<std::size_t> min_widths = {});
  void Add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  /// Prints and drops the rows so far.
  void Print(std::ostream& out);

 private:
  void PrintRow(std::ostream& out, const std::vector<Cell>& row) const;

  const std::vector<std::string> headers_;
  const bool color_;
  bool header_due_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<Cell>> rows_;
};

/// Lines of `Name:   value`, aligned.
class Fields {
 public:
  explicit Fields(bool color) : color_(color) {}
  void Add(const std::string& name, const Cell& value);
  void Print(std::ostream& out) const;

 private:
  const bool color_;
  std::vector<std::pair<std::string, Cell>> fields_;
};

/// JSON indented by two, or YAML.
void PrintDocument(std::ostream& out, const Json& document, Format format);

/// One line of JSON; bytes that are not UTF-8 are replaced.
std::string OneLine(const Json& document);

/// `{apiVersion, kind, items}`.
Json ListOf(const std::string& kind, std::vector<Json> items);

/// `{apiVersion, kind}` and then the members of `item`.
Json DocumentOf(const std::string& kind, const Json& item);

Tone ToneOf(PodState state);
Tone ToneOf(const PluginInfo& plugin);
Tone ToneOf(const ResourceInfo& resource);
/// Of its health.
Tone ToneOf(const DeviceInfo& device);

}  // namespace devmgr::ctl
