select reference as key, note as detail from provider_file where booked >= $1
