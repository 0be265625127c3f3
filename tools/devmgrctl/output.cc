// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "text.h"

namespace devmgr::ctl {
namespace {

/// Characters of UTF-8 text, which is close enough to columns for names.
std::size_t Columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

constexpr char kDelete = 0x7F;

/// Both writers leave it to the terminal. It stands in quoted texts only.
std::string EscapeDelete(std::string_view text, std::string_view escape) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == kDelete) {
      escaped += escape;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// True for text that YAML would read back as something else.
bool IsAmbiguous(const std::string& text) {
  if (text.empty()) return true;
  const YAML::Node scalar(text);
  bool as_bool = false;
  double as_double = 0;
  return YAML::convert<bool>::decode(scalar, as_bool) ||
         YAML::convert<double>::decode(scalar, as_double) || text == "~" ||
         text == "null" || text == "Null" || text == "NULL" ||
         text.find(": ") != std::string::npos || text.front() == '0' ||
         text.find(kDelete) != std::string::npos;
}

void Emit(YAML::Emitter& out, const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      if (value.empty()) {
        out << YAML::Flow;
      }
      out << YAML::BeginMap;
      for (const auto& [name, member] : value.items()) {
        out << YAML::Key << name << YAML::Value;
        Emit(out, member);
      }
      out << YAML::EndMap;
      return;
    case Json::value_t::array:
      if (value.empty()) {
        out << YAML::Flow;
      }
      out << YAML::BeginSeq;
      for (const Json& item : value) Emit(out, item);
      out << YAML::EndSeq;
      return;
    case Json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      if (IsAmbiguous(text)) out << YAML::DoubleQuoted;
      out << text;
      return;
    }
    case Json::value_t::boolean:
      out << (value.get<bool>() ? "true" : "false");
      return;
    default:
      out << value.dump();
      return;
  }
}

/// What is not UTF-8 is replaced: neither writer takes it.
std::string JsonText(const Json& document, int indent) {
  return EscapeDelete(
      document.dump(indent, ' ', false, Json::error_handler_t::replace),
      "\\u007f");
}

}  // namespace

std::string Shown(const std::string& text) {
  return text.empty() ? "<none>" : Clean(text);
}

bool WantsColor(const Options& options, const Environment& environment) {
  if (options.color != ColorMode::kAuto) {
    return options.color == ColorMode::kAlways;
  }
  if (!environment.out_is_terminal) return false;
  const char* no_color = environment.getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = environment.getenv("TERM");
  return term == nullptr || std::string(term) != "dumb";
}

std::string Painted(const std::string& text, Tone tone, bool color) {
  if (!color) return text;
  switch (tone) {
    case Tone::kPlain:
      return text;
    case Tone::kTitle:
      return "\033[1m" + text + "\033[0m";
    case Tone::kGood:
      return "\033[32m" + text + "\033[0m";
    case Tone::kWarn:
      return "\033[33m" + text + "\033[0m";
    case Tone::kBad:
      return "\033[31m" + text + "\033[0m";
  }
  return text;
}

Table::Table(std::vector<std::string> headers, bool no_headers, bool color,
             std::vector<std::size_t> min_widths)
    : headers_(std::move(headers)),
      color_(color),
      header_due_(!no_headers),
      widths_(std::move(min_widths)) {
  widths_.resize(headers_.size());
}

void Table::Add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = Shown(cell.text);
  rows_.push_back(std::move(row));
}

void Table::Print(std::ostream& out) {
  std::vector<Cell> header;
  for (const std::string& name : headers_) {
    header.emplace_back(name, Tone::kTitle);
  }
  if (header_due_) rows_.insert(rows_.begin(), std::move(header));
  header_due_ = false;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths_.size(); ++i) {
      widths_[i] = std::max(widths_[i], Columns(row[i].text));
    }
  }
  for (const auto& row : rows_) PrintRow(out, row);
  rows_.clear();
}

void Table::PrintRow(std::ostream& out, const std::vector<Cell>& row) const {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += Painted(row[i].text, row[i].tone, color_);
    if (i + 1 == row.size()) break;
    const std::size_t width = i < widths_.size() ? widths_[i] : 0;
    const std::size_t columns = Columns(row[i].text);
    line.append((width > columns ? width - columns : 0) + 3, ' ');
  }
  out << line << "\n";
}

void Fields::Add(const std::string& name, const Cell& value) {
  fields_.emplace_back(name, Cell(Shown(value.text), value.tone));
}

void Fields::Print(std::ostream& out) const {
  std::size_t width = 0;
  for (const auto& [name, value] : fields_) {
    width = std::max(width, Columns(name));
  }
  for (const auto& [name, value] : fields_) {
    out << Painted(name + ":", Tone::kTitle, color_)
        << std::string(width - Columns(name) + 3, ' ')
        << Painted(value.text, value.tone, color_) << "\n";
  }
}

void PrintDocument(std::ostream& out, const Json& document, Format format) {
  const std::string text = JsonText(document, 2);
  if (format != Format::kYaml) {
    out << text << "\n";
    return;
  }
  YAML::Emitter emitter;
  Emit(emitter, Json::parse(text));
  out << EscapeDelete(emitter.c_str(), "\\x7F") << "\n";
}

std::string OneLine(const Json& document) { return JsonText(document, -1); }

Json ListOf(const std::string& kind, std::vector<Json> items) {
  return Json{{"apiVersion", kApiVersion},
              {"kind", kind},
              {"items", Json(std::move(items))}};
}

Json DocumentOf(const std::string& kind, const Json& item) {
  Json document{{"apiVersion", kApiVersion}, {"kind", kind}};
  for (const auto& [name, member] : item.items()) document[name] = member;
  return document;
}

Tone ToneOf(PodState state) {
  switch (state) {
    case PodState::kReady:
      return Tone::kGood;
    case PodState::kRejected:
      return Tone::kBad;
    default:
      return Tone::kWarn;
  }
}

Tone ToneOf(const PluginInfo& plugin) {
  const bool good = plugin.state == PluginState::kLive ||
                    plugin.state == PluginState::kConnected;
  return good ? Tone::kGood : Tone::kWarn;
}

Tone ToneOf(const ResourceInfo& resource) {
  if (!resource.state) return Tone::kPlain;
  return resource.state == ResourceState::kLive ? Tone::kGood : Tone::kWarn;
}

Tone ToneOf(const DeviceInfo& device) {
  if (!device.health) return Tone::kPlain;
  if (device.health == DeviceHealth::kHealthy) return Tone::kGood;
  return device.health == DeviceHealth::kUnhealthy ? Tone::kBad : Tone::kWarn;
}

}  // namespace devmgr::ctl
