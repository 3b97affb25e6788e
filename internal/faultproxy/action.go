package faultproxy

import (
	"fmt"
	"time"
)

// Fault is what is done to one command and its reply.
type Fault int

// The faults. "Cut" is to close the client's connection.
const (
	Pass Fault = iota // nothing

	// The request.
	CutRequest // it does not reach the server: cut before
	Hang       // it does not reach the server: half-open from here on, see HangAll
	Hold       // it goes to the server when the test says so: see NextHeld
	HoldAndCut // likewise, and the client is cut before
	Twice      // it goes to the server twice; the client gets the second answer
	AnswerAs   // it does not reach the server: Action.Reply is the answer

	// The reply, after the server has executed the request.
	DropReply    // cut instead
	SwallowReply // half-open from here on instead
	CutReply     // cut in the middle of it
	HoldReply    // it goes to the client when the test says so: see NextHeld
)

var faultNames = [...]string{
	"Pass", "CutRequest", "Hang", "Hold", "HoldAndCut", "Twice", "AnswerAs", "DropReply", "SwallowReply", "CutReply", "HoldReply",
}

func (f Fault) String() string {
	if f < 0 || int(f) >= len(faultNames) {
		return fmt.Sprintf("Fault(%d)", int(f))
	}
	return faultNames[f]
}

// Action is what a rule decides about one command. The zero Action lets it pass.
type Action struct {
	Fault        Fault
	Reply        string        // with AnswerAs: as it stands on the wire, "-BUSY wait\r\n"
	DelayRequest time.Duration // before it goes to the server
	DelayReply   time.Duration // before it goes to the client
}

// Do is the Action that is one fault and no more.
func Do(f Fault) Action { return Action{Fault: f} }

// Answer is the Action that answers reply, as it stands on the wire, in place of the server.
func Answer(reply string) Action { return Action{Fault: AnswerAs, Reply: reply} }

// Welcome is what is done to a new connection.
type Welcome int

// The welcomes.
const (
	Accept     Welcome = iota // as usual
	CutAtOnce                 // close it right after it was accepted
	HangAtOnce                // accept it, and neither read nor answer
)
