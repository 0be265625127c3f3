// SPDX-License-Identifier: Apache-2.0
#include "source/api/node_reader.h"

#include <fmt/core.h>

#include "source/api/json_view.h"
#include "source/api/limits.h"
#include "source/api/source_memory.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxNodeBytes = std::size_t{4} << 20;

}  // namespace

NodeReader::NodeReader(const std::string& node, Random random)
    : path_("/api/v1/nodes/" + PathSegment(node)),
      delay_(std::move(random), RetryDelay::kLast) {}

void NodeReader::AskAgain(TimePoint now) {
  is_settled_ = false;
  if (is_asking_) {
    ask_again_ = true;
  } else {
    due_ = now;
  }
}

std::optional<ApiRequest> NodeReader::Next(TimePoint now) {
  if (is_asking_ || !due_ || now < *due_) return std::nullopt;
  is_asking_ = true;
  due_.reset();
  return ApiRequest{.kind = ApiRequest::Kind::kGet,
                    .target = path_,
                    .max_bytes = kMaxNodeBytes};
}

void NodeReader::OnAnswer(TimePoint now, const ResponseHead& head,
                          std::string_view body) {
  if (head.code == 401) refused_ = true;
  if (head.code == 200) {
    const std::string uid = StringMember(FindMember(body, "metadata"), "uid");
    if (StringMember(body, "kind") != "Node" || uid.empty() ||
        !CanBeRemembered(uid)) {
      return OnFailure(now, "the answer is no Node with a UID");
    }
    uid_ = uid;
    last_error_.clear();
  } else if (head.code != 403 && head.code != 404) {
    return OnFailure(now, DescribeStatus(StatusOfAnswer(head, body)));
  } else {
    last_error_ = fmt::format("{}: {}", path_,
                              DescribeStatus(StatusOfAnswer(head, body)));
  }
  delay_.Reset();
  is_asking_ = false;
  is_settled_ = !ask_again_;
  if (std::exchange(ask_again_, false)) due_ = now;
}

void NodeReader::OnFailure(TimePoint now, const std::string& error) {
  last_error_ = fmt::format("{}: {}", path_, error);
  is_asking_ = false;
  ask_again_ = false;
  due_ = now + delay_.OnFailure(now);
}

}  // namespace devmgr::apiserver
