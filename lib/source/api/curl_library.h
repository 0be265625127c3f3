// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <curl/curl.h>

#include <string>

namespace devmgr::apiserver {

/// The functions of libcurl that are called here, each by its name without
/// `curl_`. The library is loaded when the first source needs it: with what it
/// brings along it takes 4 MB of a process, which a node without an API server
/// has no use for.
struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_pause) easy_pause = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&curl_multi_info_read) multi_info_read = nullptr;
  decltype(&curl_multi_init) multi_init = nullptr;
  decltype(&curl_multi_perform) multi_perform = nullptr;
  decltype(&curl_multi_poll) multi_poll = nullptr;
  decltype(&curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&curl_multi_setopt) multi_setopt = nullptr;
  decltype(&curl_multi_wakeup) multi_wakeup = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
  decltype(&curl_strnequal) strnequal = nullptr;
};

/// libcurl, loaded and started by the first call; it stays loaded.
///   Unavailable  it is not there, or lacks a function, or cannot be started
absl::StatusOr<const CurlLibrary*> LoadCurl();

/// The same of a file of that name, which LoadCurl does not know.
absl::StatusOr<CurlLibrary> LoadCurlFrom(const char* file);

/// A list of texts as libcurl takes it. `curl` is borrowed.
class CurlList {
 public:
  explicit CurlList(const CurlLibrary& curl) : curl_(curl) {}
  ~CurlList() { curl_.slist_free_all(list_); }
  CurlList(const CurlList&) = delete;
  CurlList& operator=(const CurlList&) = delete;

  void Append(const std::string& line) {
    curl_slist* const longer = curl_.slist_append(list_, line.c_str());
    if (longer != nullptr) list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  const CurlLibrary& curl_;
  curl_slist* list_ = nullptr;
};

}  // namespace devmgr::apiserver
