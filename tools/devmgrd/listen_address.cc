// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/listen_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

namespace devmgrd {
namespace {

constexpr std::size_t kMostQuoted = 80;

absl::Status NoAddress(std::string_view text) {
  using Json = nlohmann::json;
  // The escapes of JSON keep the message plain.
  const std::string message = fmt::format(
      "{} is no address to listen on: must be IP:PORT (IPv4), such as "
      "127.0.0.1:9510, or a port of the loopback",
      Json(std::string(text.substr(0, kMostQuoted)))
          .dump(-1, ' ', true, Json::error_handler_t::replace));
  return absl::InvalidArgumentError(absl::string_view(message));
}

bool IsIp(const std::string& host) {
  in_addr address{};
  return host.find('\0') == std::string::npos &&
         ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

std::optional<in_port_t> ReadPort(std::string_view text) {
  in_port_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end) return std::nullopt;
  return port;
}

}  // namespace

std::string ListenAddress::ToString() const {
  return fmt::format("{}:{}", host, port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  ListenAddress address;
  const auto colon = text.rfind(':');
  const auto port =
      ReadPort(colon == text.npos ? text : text.substr(colon + 1));
  if (!port.has_value()) return NoAddress(text);
  address.port = *port;
  std::string host(colon == text.npos ? "" : text.substr(0, colon));
  if (host.empty() || host == "localhost") return address;
  if (!IsIp(host)) return NoAddress(text);
  address.host = std::move(host);
  return address;
}

}  // namespace devmgrd
