// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "http/raw_client.h"

namespace devmgr::testing {

/// A client of an API server, one request after the other.
class ApiClient {
 public:
  struct Answer {
    int code = 0;
    std::string head;
    nlohmann::json body;
  };

  explicit ApiClient(std::uint16_t port) : raw_(port) {}

  http::RawClient& raw() { return raw_; }
  void Send(const std::string& method, const std::string& target,
            const std::string& body = "",
            const std::string& headers = "Content-Type: application/json\r\n") {
    raw_.Send(method + " " + target + " HTTP/1.1\r\n" + headers +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  }
  Answer Receive() {
    Answer answer;
    answer.head = raw_.ReadUntil("\r\n\r\n");
    answer.code = std::atoi(answer.head.c_str() + 9);
    const std::string key = "Content-Length: ";
    const auto at = answer.head.find(key);
    if (at == std::string::npos) return answer;
    const std::string text = raw_.ReadBytes(
        std::strtoul(&answer.head[at + key.size()], nullptr, 10));
    answer.body = nlohmann::json::parse(text, nullptr, false);
    return answer;
  }
  Answer Do(const std::string& method, const std::string& target,
            const std::string& body = "",
            const std::string& headers = "Content-Type: application/json\r\n") {
    Send(method, target, body, headers);
    return Receive();
  }

  /// The next event of a watch; nothing when the stream has ended in order.
  std::optional<nlohmann::json> Event() {
    while (lines_.empty()) {
      const std::string size = raw_.ReadUntil("\r\n");
      const std::size_t count = std::strtoul(size.c_str(), nullptr, 16);
      std::string chunk = raw_.ReadBytes(count + 2);
      if (count == 0) return std::nullopt;
      chunk.resize(count);
      for (std::size_t end; (end = chunk.find('\n')) != std::string::npos;) {
        lines_.push_back(chunk.substr(0, end));
        chunk.erase(0, end + 1);
      }
      EXPECT_EQ(chunk, "");
    }
    const auto event = nlohmann::json::parse(lines_.front(), nullptr, false);
    lines_.pop_front();
    return event;
  }
  /// `ADDED name`, `end`.
  std::string Brief() {
    const auto event = Event();
    if (!event.has_value()) return "end";
    const auto& object = (*event)["object"];
    std::string text = (*event)["type"].get<std::string>();
    if (object.contains("metadata") && object["metadata"].contains("name")) {
      text += " " + object["metadata"]["name"].get<std::string>();
    }
    return text;
  }

 private:
  http::RawClient raw_;
  std::deque<std::string> lines_;
};

}  // namespace devmgr::testing
