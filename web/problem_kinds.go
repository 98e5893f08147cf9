package web

import (
	"net/http"
	"time"
)

// kinds are all problems that there are.
func kinds() []kind {
	return []kind{
		notFound, ownerMismatch, leaseLost, staleToken, validation, malformed, unsupportedMediaType, tooLarge, headerTooLarge, timedOut,
		unauthorized, forbidden, preconditionFailed, keyReused, methodNotAllowed, rateLimited, artifactMissing, unavailable,
	}
}

var (
	notFound = kind{
		slug: "not-found", title: "Not found", status: http.StatusNotFound,
		explained: "Nothing has this address, or nobody holds the lock: it never existed, was released, or its lease has expired. " +
			"Check the spelling, a slash at the end, and the base path. After a release, take it as done.",
	}
	ownerMismatch = kind{
		slug: "owner-mismatch", title: "Held by somebody else", status: http.StatusForbidden,
		explained: "The lock is held, but not by this owner, or by this owner under another key. Only who acquired it may renew or " +
			"release it. Acquire it when it is free.",
	}
	leaseLost = kind{
		slug: "lease-lost", title: "Lease lost", status: http.StatusConflict,
		explained: "The lease has ended: it expired, was released, was taken over, or has been held for as long as this server allows. " +
			"It is never revived. Stop the work that it protected and acquire the lock again; the new token is larger.",
	}
	staleToken = kind{
		slug: "stale-token", title: "Stale token", status: http.StatusConflict,
		explained: "A larger token has written to this target, or the target belongs to another lock: a write with this token must be " +
			"refused. last_token is what the target has seen. This is advice; a store that can compare must compare by itself.",
	}
	validation = kind{
		slug: "validation", title: "Values not allowed", status: http.StatusUnprocessableEntity,
		explained: "The request was understood, but some of its values break a rule. errors lists every one of them: pointer says " +
			"which, detail what it may be. Sending the same again gives the same answer.",
	}
	malformed = kind{
		slug: "malformed", title: "Malformed request", status: http.StatusBadRequest,
		explained: "The request has no single meaning: the body isn't one JSON text in UTF-8, a name stands in it twice, or a header " +
			"that is sent once was sent twice. Nothing was done.",
	}
	unsupportedMediaType = kind{
		slug: "unsupported-media-type", title: "Unsupported media type", status: http.StatusUnsupportedMediaType,
		explained: "The body must come with Content-Type: application/json, in UTF-8, and without a content coding such as gzip.",
	}
	tooLarge = kind{
		slug: "too-large", title: "Body too large", status: http.StatusRequestEntityTooLarge,
		explained: "A body has at most 16 KiB here, white space included. Nothing was done.",
	}
	headerTooLarge = kind{
		slug: "header-too-large", title: "Headers too large", status: http.StatusRequestHeaderFieldsTooLarge,
		explained: "The request line and the headers together have at most 16 KiB. Nothing was done.",
	}
	timedOut = kind{
		slug: "timeout", title: "Request too slow", status: http.StatusRequestTimeout,
		explained: "The body didn't arrive in time. Nothing was done; send the request again over a new connection.",
	}
	unauthorized = kind{
		slug: "unauthorized", title: "Key needed", status: http.StatusUnauthorized,
		explained: "Send a key as Authorization: Bearer pawl_… . The one that was sent, if any, is unknown, revoked or expired. Whoever " +
			"runs this server makes keys with pawl key create. A person opens the page, which asks for the key.",
	}
	forbidden = kind{
		slug: "forbidden", title: "Not allowed with this key", status: http.StatusForbidden,
		explained: "The key is right, but its role doesn't reach this action, or its prefix doesn't reach this name. A reader may look, a " +
			"worker also acquires, renews and releases, an operator also acts on the page.",
	}
	preconditionFailed = kind{
		slug: "precondition-failed", title: "Another token is current", status: http.StatusPreconditionFailed,
		explained: "If-Match names a fencing token that isn't the lock's current one: the owner has acquired it again since. Nothing was " +
			"done.",
	}
	keyReused = kind{
		slug: "idempotency-key-reused", title: "Idempotency-Key used for another request", status: http.StatusUnprocessableEntity,
		explained: "This Idempotency-Key came before, for this lock, with another body. A retry sends the same body; another request " +
			"needs a key of its own.",
	}
	methodNotAllowed = kind{
		slug: "method-not-allowed", title: "Method not allowed", status: http.StatusMethodNotAllowed,
		explained: "The address exists, but not for this method. The Allow header names those that it has.",
	}
	rateLimited = kind{
		slug: "rate-limited", title: "Too many wrong keys", status: http.StatusTooManyRequests, retry: time.Second,
		explained: "Ten wrong keys came from this address within a minute. Until Retry-After is over, only keys that were right here " +
			"before are let in from it. Look for a client whose key was revoked or has expired.",
	}
	artifactMissing = kind{
		slug: "artifact-missing", title: "The artifact's file is missing", status: http.StatusGone,
		explained: "It was published, and its file isn't in this server's store any more: the store is another one than the jobs publish " +
			"to, or somebody has deleted the file. Asking again won't help: tell whoever runs the server. pawl artifact verify lists all " +
			"such files, and a rerun of the job publishes a new version.",
	}
	unavailable = kind{
		slug: "unavailable", title: "Unavailable", status: http.StatusServiceUnavailable, retry: 2 * time.Second,
		explained: "The answer can't be given now: the database is away or slow, or this process takes no work. What was asked may or may " +
			"not have been done. Ask again; with the same Idempotency-Key an acquire is answered the same grant.",
	}
)
