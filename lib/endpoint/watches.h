// SPDX-License-Identifier: Apache-2.0
//
// The watches that are open: what their streams have is sent as fast as their
// clients read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "apistore/watch_stream.h"
#include "http/server.h"

namespace devmgr::endpoint {

/// Lives on the thread of the server, which outlives it.
class Watches {
 public:
  /// How tasks get onto the thread of the server.
  struct Loop {
    std::function<void(std::function<void()>)> post;
    std::function<void(std::chrono::milliseconds, std::function<void()>)>
        post_after;
    /// The revision that a bookmark may name.
    std::function<std::uint64_t()> revision;
  };

  explicit Watches(Loop loop) : loop_(std::move(loop)) {}

  std::size_t size() const { return open_.size(); }
  std::size_t CountOf(const std::string& driver) const;

  /// Sends headers at once, then the stream, and ends after `timeout`.
  /// `bookmarks`: its client understands a last one.
  void Open(const std::string& driver,
            std::shared_ptr<apistore::WatchStream> stream, bool bookmarks,
            std::chrono::seconds timeout, http::Responder& responder);
  /// Ends all in order.
  void EndAll();
  /// Called whenever one is over.
  void OnOver(std::function<void()> over) { over_ = std::move(over); }

 private:
  struct Watch {
    std::string driver;
    std::shared_ptr<apistore::WatchStream> stream;
    std::shared_ptr<http::StreamWriter> writer;
    bool bookmarks = false;
    bool done = false;
  };
  using WatchPtr = std::shared_ptr<Watch>;

  void Pump(Watch& watch);
  void End(Watch& watch);
  void Forget(const WatchPtr& watch);

  const Loop loop_;
  std::set<WatchPtr> open_;
  std::function<void()> over_;
};

}  // namespace devmgr::endpoint
