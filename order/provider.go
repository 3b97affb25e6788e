package order

import "fmt"

// ProviderAnswer is what a payment provider says of an order that is about to be closed.
type ProviderAnswer int

// The answers. Only NotPaid lets an order be closed.
const (
	PaymentUnknown ProviderAnswer = iota // it cannot tell: a payment may be under way
	NotPaid                              // nothing was paid, and nothing is under way
	PaidThere                            // it was paid; the application has not been told yet
)

func (a ProviderAnswer) String() string {
	switch a {
	case PaymentUnknown:
		return "unknown"
	case NotPaid:
		return "not paid"
	case PaidThere:
		return "paid there"
	}
	return fmt.Sprintf("ProviderAnswer(%d)", int(a))
}
