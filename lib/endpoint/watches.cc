// SPDX-License-Identifier: Apache-2.0
#include "endpoint/watches.h"

#include <algorithm>
#include <utility>

namespace devmgr::endpoint {
namespace {

/// What one chunk has at most, if one event has not more.
constexpr std::size_t kBatchBytes = 64u << 10;

}  // namespace

std::size_t Watches::CountOf(const std::string& driver) const {
  return static_cast<std::size_t>(std::count_if(
      open_.begin(), open_.end(),
      [&](const WatchPtr& watch) { return watch->driver == driver; }));
}

void Watches::Open(const std::string& driver,
                   std::shared_ptr<apistore::WatchStream> stream,
                   bool bookmarks, std::chrono::seconds timeout,
                   http::Responder& responder) {
  auto watch = std::make_shared<Watch>();
  watch->driver = driver;
  watch->stream = std::move(stream);
  watch->bookmarks = bookmarks;
  open_.insert(watch);
  const auto later = [weak = std::weak_ptr<Watch>(watch)](auto what) {
    return [weak, what] {
      if (const WatchPtr alive = weak.lock()) what(alive);
    };
  };
  const auto pump = later([this](const WatchPtr& alive) { Pump(*alive); });
  // Called from within the store: the stream is read afterwards.
  watch->stream->OnReady([this, pump] { loop_.post(pump); });
  watch->writer = responder.Stream(
      200, {{"Content-Type", "application/json"}},
      {pump, later([this](const WatchPtr& alive) { Forget(alive); })});
  loop_.post_after(timeout,
                   later([this](const WatchPtr& alive) { End(*alive); }));
}

void Watches::Pump(Watch& watch) {
  if (watch.done) return;
  // Also while its client reads nothing: then it is cut off after a while.
  if (watch.stream->overflowed()) {
    watch.done = true;
    watch.writer->End();
    return;
  }
  if (watch.writer->pending() > 0) return;
  std::string text = watch.stream->Take(kBatchBytes);
  if (!text.empty()) watch.writer->Write(std::move(text));
}

/// What waits is sent, so that the client need not ask for it again.
void Watches::End(Watch& watch) {
  if (watch.done) return;
  watch.done = true;
  if (watch.bookmarks) {
    watch.stream->AddBookmark(loop_.revision(), /*initial_end=*/false);
  }
  std::string text;
  while (!watch.stream->empty()) text += watch.stream->Take(kBatchBytes);
  if (!text.empty()) watch.writer->Write(std::move(text));
  watch.writer->End();
}

void Watches::EndAll() {
  const std::set<WatchPtr> open = open_;
  for (const WatchPtr& watch : open) End(*watch);
}

void Watches::Forget(const WatchPtr& watch) {
  watch->done = true;
  open_.erase(watch);
  if (over_) over_();
}

}  // namespace devmgr::endpoint
