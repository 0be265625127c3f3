// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"

namespace devmgr {

/// Copies bytes between callers of one socket and another one, so that a test
/// can end connections without a farewell, as a process does that is killed.
class Relay {
 public:
  Relay(const std::filesystem::path& listen, std::filesystem::path target)
      : target_(std::move(target)), listener_(Socket()) {
    const sockaddr_un address = AddressOf(listen);
    EXPECT_EQ(bind(listener_.get(), Any(address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), SOMAXCONN), 0);
    acceptor_ = std::thread([this] { AcceptAll(); });
  }
  ~Relay() {
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    Cut();
    for (std::thread& pump : pumps_) pump.join();
  }

  /// Ends all connections there are.
  void Cut() {
    const std::lock_guard lock(mutex_);
    for (const UniqueFd& fd : fds_) shutdown(fd.get(), SHUT_RDWR);
  }

  /// So many have called so far.
  std::size_t callers() {
    const std::lock_guard lock(mutex_);
    return fds_.size() / 2;
  }

 private:
  static UniqueFd Socket() {
    return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  static sockaddr_un AddressOf(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    return address;
  }
  static const sockaddr* Any(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  }

  void AcceptAll() {
    for (;;) {
      UniqueFd caller(accept(listener_.get(), nullptr, nullptr));
      if (!caller.valid()) return;
      UniqueFd callee = Socket();
      const sockaddr_un address = AddressOf(target_);
      if (connect(callee.get(), Any(address), sizeof(address)) != 0) continue;
      const std::lock_guard lock(mutex_);
      Pump(caller.get(), callee.get());
      Pump(callee.get(), caller.get());
      fds_.push_back(std::move(caller));
      fds_.push_back(std::move(callee));
    }
  }
  void Pump(int from, int to) {
    pumps_.emplace_back([from, to] {
      std::string bytes(65'536, '\0');
      for (;;) {
        const ssize_t count = read(from, bytes.data(), bytes.size());
        if (count <= 0) break;
        if (send(to, bytes.data(), static_cast<std::size_t>(count),
                 MSG_NOSIGNAL) != count) {
          break;
        }
      }
      shutdown(to, SHUT_RDWR);
    });
  }

  const std::filesystem::path target_;
  const UniqueFd listener_;
  std::mutex mutex_;
  std::vector<UniqueFd> fds_;       ///< Open until all threads have ended.
  std::vector<std::thread> pumps_;  ///< Grows on the acceptor's thread.
  std::thread acceptor_;
};

}  // namespace devmgr
