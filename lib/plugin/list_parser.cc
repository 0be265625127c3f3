// SPDX-License-Identifier: Apache-2.0
#include "plugin/list_parser.h"

#include <utility>

namespace devmgr::plugin {

ListParser::~ListParser() {
  std::unique_ptr<ThreadExecutor> thread;
  {
    MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread != nullptr) thread->Stop();
}

void ListParser::Parse(std::size_t bytes, Task parse) {
  if (!is_apart_ || bytes <= kShort) return parse();
  PostLong(std::move(parse));
}

void ListParser::After(Task task) {
  if (waiting_ == 0) return task();
  PostLong(std::move(task));
}

void ListParser::PostLong(Task task) {
  ++waiting_;
  MutexLock lock(mutex_);
  if (thread_ == nullptr) thread_ = ThreadExecutor::Start("devmgr-lists");
  thread_->Post([this, task = std::move(task)] {
    task();
    --waiting_;
  });
}

}  // namespace devmgr::plugin
