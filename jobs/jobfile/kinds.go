package jobfile

import "time"

// SQL is the block of a job of kind sql. Args hold Text, int64, float64, bool or nil.
type SQL struct {
	Database    string  `yaml:"database" default:"pawl" doc:"pawl (the fenced one), or a name under databases."`
	Statement   string  `yaml:"statement" raw:"true" doc:"The SQL text; or else file."`
	File        string  `yaml:"file" doc:"A file with the SQL text, relative to the job file; or else statement."`
	Args        []any   `yaml:"args" text:"both" scalar:"true" doc:"Bound as $1, $2, …; never pasted into the text."`
	Transaction string  `yaml:"transaction" default:"single" enum:"single per_statement" doc:"single: guard, statements, expectation and completion in one commit, which needs database pawl. per_statement: a checkpoint after each."`
	Isolation   string  `yaml:"isolation" default:"read_committed" enum:"read_committed repeatable_read" doc:"The transaction's isolation."`
	Expect      SQLNeed `yaml:"expect" doc:"What must be true, or the run fails."`

	// Text is Statement, or what File holds.
	Text string `yaml:"-"`
}

// SQLNeed is what a sql job expects.
type SQLNeed struct {
	Rows Rows `yaml:"rows" unset:"any number" doc:"How many rows the last statement touches or returns: 5, \">0\", \">=1\", \"<10\", \"<=9\" or \"!=0\"."`
}

// Command is the block of a job of kind command.
type Command struct {
	Argv       []Text          `yaml:"argv,required" text:"both" single:"true" doc:"The program and its arguments, without a shell. With shell: true it is one text."`
	Shell      bool            `yaml:"shell" default:"false" doc:"Runs the text with /bin/sh -c. It may hold no template; use env."`
	Dir        string          `yaml:"dir" unset:"the server's" doc:"The working directory."`
	Env        map[string]Text `yaml:"env" text:"both" doc:"Environment variables, besides the PAWL_ ones that every command gets."`
	InheritEnv bool            `yaml:"inherit_env" default:"false" doc:"Also passes on the server's own environment; else only PATH, HOME and TMPDIR."`
	Grace      time.Duration   `yaml:"grace" unset:"the job's grace" min:"1s" max:"1d" doc:"On timeout or drain (on_drain): TERM to the process group, this much later KILL. When the lease is lost, at most a third of ttl."`
	OnDrain    string          `yaml:"on_drain" default:"stop" enum:"stop finish" doc:"What a shutdown of the server means: TERM at once and grace to end, or first the server's --grace to finish, then TERM and two seconds. Either costs no attempt."`
	Output     Output          `yaml:"output" doc:"What is kept of its output."`
	Exit       map[int]string  `yaml:"exit" default:"{0: complete}" enum:"complete retry skip error" doc:"What exit codes mean. Every other code is an error."`
}

// Output says what is kept of a command's output.
type Output struct {
	Max      Size   `yaml:"max" default:"1MiB" min:"1KiB" max:"64MiB" doc:"How much is kept of one run."`
	Keep     string `yaml:"keep" default:"head_tail" enum:"head_tail head tail" doc:"Which part is kept when there is more."`
	Progress string `yaml:"progress" raw:"true" unset:"none" doc:"A regular expression with two groups, done and total, that is looked for in each line."`
}

// HTTP is the block of a job of kind http.
type HTTP struct {
	Method      string          `yaml:"method" default:"POST" enum:"GET HEAD POST PUT PATCH DELETE" doc:"The request's method."`
	URL         Text            `yaml:"url,required" text:"both" doc:"An http or https URL. A template may not be part of its host."`
	Headers     map[string]Text `yaml:"headers" text:"both" doc:"Request headers, besides Idempotency-Key, Fencing-Token and Pawl-Lock, which every request has."`
	Body        Body            `yaml:"body" doc:"The request's body."`
	Expect      HTTPNeed        `yaml:"expect" doc:"What must be true of the answer, or the run fails."`
	RetryOn     []Cause         `yaml:"retry_on" default:"[429, 502, 503, connect]" doc:"Status codes, and connect (no connection), that are tried again. Retry-After is honoured."`
	OnTimeout   string          `yaml:"on_timeout" default:"uncertain" enum:"uncertain retry error" doc:"What it means that no answer came to a request that was sent: a person decides, send it again with the same key, or the period is dead and its retry does. Leave it out beside probe."`
	KeyLifetime time.Duration   `yaml:"key_lifetime" unset:"24h" min:"1s" none:"true" doc:"How long the receiver surely keeps an idempotency key, after which nothing is sent again with it. With none it keeps no keys, so that nothing is sent again that may have been sent."`
	ValidFor    time.Duration   `yaml:"valid_for" unset:"no limit" min:"1s" doc:"How long the request makes sense, from the first try on. After it nothing is sent."`
	Probe       *Probe          `yaml:"probe" doc:"Asks the receiver what has become of a request of which nobody knows; what it hasn't got is sent again."`
	MaxResponse Size            `yaml:"max_response" default:"256KiB" min:"1KiB" max:"64MiB" doc:"A longer answer is an error."`
}

// Probe is how an http job asks what has become of a request.
type Probe struct {
	Method  string          `yaml:"method" default:"GET" enum:"GET HEAD" doc:"The method of the question."`
	URL     Text            `yaml:"url,required" text:"probe" doc:"Where to ask; {{effect.key}} is the request's idempotency key."`
	Headers map[string]Text `yaml:"headers" text:"probe" doc:"Its headers."`
	Expect  HTTPNeed        `yaml:"expect" doc:"What an answer is like that says that it has happened. What is neither this nor absent leaves it open."`
	Absent  []int           `yaml:"absent" default:"[404]" min:"100" max:"599" doc:"The status codes that say that the receiver has never got it."`
}

// Body is a request's body. One of its fields is set, or none. JSON holds what
// encoding/json makes of any, with Text in place of strings; see [Expand].
type Body struct {
	JSON any  `yaml:"json" text:"both" doc:"Any value, sent as JSON; its texts may hold templates."`
	Text Text `yaml:"text" text:"both" doc:"Text, sent as it is."`
}

// HTTPNeed is what an http job expects.
type HTTPNeed struct {
	Status []int    `yaml:"status" unset:"any 2xx" min:"100" max:"599" doc:"The status codes that are a success."`
	JSON   JSONNeed `yaml:"json" doc:"A value in the answer's JSON body."`
}

// JSONNeed is a value that a JSON answer must have.
type JSONNeed struct {
	Pointer string `yaml:"pointer" raw:"true" doc:"A JSON pointer to it, like /ok."`
	Equals  any    `yaml:"equals" doc:"What it must be."`
}

// Go is the block of a job of kind go.
type Go struct {
	Handler string `yaml:"handler" unset:"the job's name" doc:"The name under which the binary that runs the job registered its function."`
}
